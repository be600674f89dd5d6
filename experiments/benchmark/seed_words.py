"""Matching of seed words, deletion in a step, and the command from end to end."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.benchmark.preset import Preset
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.seed_documents import SeedDocuments, read_documents
from experiments.kit.timing import Step, duration, elapsed, train_function_step

_BATCH, _LENGTH, _BATCHES = 64, 200, 4
_SNORKEL, _SKLEARN = "Snorkel's PandasLFApplier", "scikit-learn"
_EPOCHS, _TEST = 8, 0.2


def _documents(name: str, data_dir: str | None) -> SeedDocuments:
    if data_dir is not None:
        # Where all loaders look.
        os.environ["RLM_DATA_DIR"] = data_dir
    return read_documents(name)


def measure_matching(
    preset: Preset, data_dir: str | None, seeds: tuple[int, ...]
) -> Row:
    """Times the rule on a set of documents, a function a seed of Snorkel beside."""
    documents = _documents(preset.seed_set, data_dir)
    timings = Timings()
    for _ in seeds:
        rule = documents.rule()
        timings.add("rule", elapsed(functools.partial(rule.match, documents.texts)))
    what = f"seeds matched in {len(documents.texts):,} documents"
    ours = timings.text("rule")
    if not _apply_snorkel(documents, timings):
        return Row([Line(what, ours, f"{_SNORKEL}: not installed")], timings.numbers())
    ratio = timings.median(_SNORKEL) / timings.median("rule")
    line = Line(
        what,
        ours,
        f"{_SNORKEL}, a function a seed: {timings.text(_SNORKEL)}",
        f"{1 / ratio:.3f}, {ratio:.0f} times as fast",
        "at least 10 times",
    )
    return Row([line], timings.numbers())


def _apply_snorkel(documents: SeedDocuments, timings: Timings) -> bool:
    try:
        import pandas
        from snorkel.labeling import LabelingFunction, PandasLFApplier
    except ImportError:
        return False
    rule = documents.rule()

    def function(number: int, text: str, label: int) -> Any:
        found = re.compile(rf"\b{re.escape(text)}\b")
        return LabelingFunction(
            f"{number} {text}",
            lambda row: label if found.search(row.text) else -1,
        )

    functions = [
        function(number, seed.text, seed.class_index)
        for number, seed in enumerate(rule.seeds)
    ]
    # Once, and not in each function.
    frame = pandas.DataFrame({"text": [text.lower() for text in documents.texts]})
    applier = PandasLFApplier(functions)
    timings.add(_SNORKEL, elapsed(lambda: applier.apply(frame, progress_bar=False)))
    return True


# === Training ===


def measure_steps(
    preset: Preset, data_dir: str | None, rounds: int, seeds: tuple[int, ...]
) -> Row:
    """Times a step with random deletion beside one without."""
    documents = _documents(preset.seed_set, data_dir)
    timings = Timings()
    for seed in seeds:
        steps = {
            "with": _step(documents, {"ratio": 0.9}, seed),
            "without": _step(documents, None, seed),
        }
        timings.run(steps, rounds)
    line = Line(
        f"step of `convolutional`, {_BATCH} rows of {_LENGTH} words, words deleted",
        timings.text("with"),
        f"without: {timings.text('without')}",
        timings.ratio("with", "without"),
        "at most 1.1",
    )
    return Row([line], timings.numbers())


def _step(documents: SeedDocuments, deletion: dict[str, Any] | None, seed: int) -> Step:
    from rlm_tf.data import DocumentBatches
    from rlm_tf.labelling import WordList
    from rlm_tf.layers import WordDeletion
    from rlm_tf.models import TextReader, word_classifier
    from rlm_tf.training import ResumableBatches

    texts = documents.texts[: _BATCH * _BATCHES]
    reader = TextReader(WordList.build(texts), _LENGTH)
    tokens = reader.rows(texts).tokens
    labels = documents.labels[: len(texts)]
    batches = DocumentBatches(tokens, labels, _BATCH, seed=seed)
    transform = None if deletion is None else WordDeletion(**deletion, seed=seed)
    model = word_classifier(
        "convolutional", reader, documents.class_names, tokens=tokens, seed=seed
    )
    # The pipeline is part of the step.
    data = ResumableBatches(batches, transform=transform).dataset.repeat()
    step = train_function_step(model, list(data.take(1)))
    iterator = iter(data)

    def both() -> None:
        next(iterator)
        step()

    return both


def measure_linear(preset: Preset, data_dir: str | None, seeds: tuple[int, ...]) -> Row:
    """Times training of the linear classifier beside scikit-learn's, true labels."""
    documents = _documents(preset.linear_set, data_dir)
    timings, right = Timings(), dict[str, list[float]]()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        test = rng.random(len(documents.texts)) < _TEST
        parts = [
            ([documents.texts[row] for row in rows], documents.labels[rows])
            for rows in (np.flatnonzero(~test), np.flatnonzero(test))
        ]
        (texts, labels), (judged, truth) = parts
        for name, run in (("ours", _ours), (_SKLEARN, _theirs)):
            began = time.perf_counter()
            said = run(texts, labels, judged, seed)
            timings.add(name, time.perf_counter() - began)
            right.setdefault(name, []).append(100 * float(np.mean(said == truth)))
    accuracies = {name: np.mean(values) for name, values in right.items()}
    line = Line(
        f"`linear` from {len(documents.texts):,} texts to predictions",
        f"{timings.text('ours')}, {accuracies['ours']:.1f} % right",
        f"{_SKLEARN}: {timings.text(_SKLEARN)}, {accuracies[_SKLEARN]:.1f} % right",
        timings.ratio("ours", _SKLEARN),
    )
    return Row([line], {**timings.numbers(), "right": right})


def _ours(
    texts: list[str], labels: np.ndarray, judged: list[str], seed: int
) -> np.ndarray:
    from rlm_tf.labelling import WordList
    from rlm_tf.models import SeedSupervision, TextReader, word_classifier

    reader = TextReader(WordList.build(texts), _LENGTH)
    tokens = reader.rows([*texts, *judged]).tokens
    names = [str(label) for label in range(int(labels.max()) + 1)]

    def make(own: int) -> Any:
        learnt = tokens[: len(texts)]
        return word_classifier("linear", reader, names, tokens=learnt, seed=own)

    given = np.concatenate([labels, np.full(len(judged), -1)])
    supervision = SeedSupervision(
        make, select="all", epochs=_EPOCHS, batch_size=_BATCH, iterations=0, seed=seed
    )
    outcome = supervision.fit(tokens, given)
    return outcome.probs[len(texts) :].argmax(axis=1)


def _theirs(
    texts: list[str], labels: np.ndarray, judged: list[str], seed: int
) -> np.ndarray:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    from rlm_tf.labelling.seed_tokens import words_of

    del seed
    vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True, min_df=2)
    model = LogisticRegression(C=10.0, max_iter=500)
    model.fit(vectorizer.fit_transform(texts), labels)
    return np.asarray(model.predict(vectorizer.transform(judged)))


# === The command, and what it serves ===


def measure_tool(preset: Preset, data_dir: str | None, seeds: tuple[int, ...]) -> Row:
    """Times `rlm_tf seed_classify`, and measures its memory on many documents."""
    documents = _documents(preset.linear_set, data_dir)
    lines, numbers = [], dict[str, Any]()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        seconds, _ = _run_tool(documents, folder, len(documents.texts), [])
        lines.append(
            Line(
                f"`rlm_tf seed_classify`, {len(documents.texts):,} texts",
                duration(seconds),
                target="at most 2 min",
            )
        )
        numbers["tool_seconds"] = seconds
        many = ["--iterations=0", "--epochs=1"]
        seconds, mebibytes = _run_tool(documents, folder, preset.tool_rows, many)
        what = f"the same, one pass, {preset.tool_rows:,} texts"
        limit = "at most 3,072 MiB"
        lines.append(Line(f"{what}, memory", f"{mebibytes:,.0f} MiB", target=limit))
        lines.append(Line(f"{what}, time", duration(seconds)))
        numbers |= {"many_seconds": seconds, "many_mib": mebibytes}
    return Row(lines, numbers)


def _run_tool(
    documents: SeedDocuments, folder: pathlib.Path, number: int, flags: list[str]
) -> tuple[float, float]:
    """Returns seconds and the most MiB of a process on so many documents."""
    texts = documents.texts
    with open(folder / "texts.txt", "w", encoding="utf-8") as file:
        for row in range(number):
            # Longer than a copy: documents are not all alike.
            line = " ".join(texts[row % len(texts)].split())
            file.write(f"{line} {row}\n")
    (folder / "seeds.json").write_text(json.dumps(documents.seeds), "utf-8")
    began = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            "-m",
            "rlm_tf.commands",
            "seed_classify",
            f"--texts={folder / 'texts.txt'}",
            f"--seed_words={folder / 'seeds.json'}",
            f"--output_dir={folder / f'out{number}'}",
            *flags,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - began
    # Of the largest child so far: smaller runs come first.
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return seconds, most


def measure_serving(
    preset: Preset, data_dir: str | None, rounds: int, seeds: tuple[int, ...]
) -> Row:
    """Times exported classifiers, a thousand strings at once."""
    import tensorflow as tf

    from rlm_tf.labelling import WordList
    from rlm_tf.models import TextReader, word_classifier
    from rlm_tf.models.text_classifiers.kinds import KINDS
    from rlm_tf.serving import export_text_classifier

    documents = _documents(preset.linear_set, data_dir)
    texts = documents.texts[:1000]
    reader = TextReader(WordList.build(documents.texts[:5000]), _LENGTH)
    tokens = reader.rows(texts).tokens
    timings = Timings()
    with tempfile.TemporaryDirectory() as name:
        steps: dict[str, Callable[[], Any]] = {}
        for kind in KINDS:
            model = word_classifier(
                kind, reader, documents.class_names, tokens=tokens, seed=seeds[0]
            )
            model.build()
            path = pathlib.Path(name, kind)
            export_text_classifier(model, path)
            classify = tf.saved_model.load(str(path)).signatures["classify"]
            given = tf.constant([text.encode() for text in texts])
            steps[kind] = _serving_step(classify, given)
        timings.run(steps, rounds)
    lines = [
        Line(f"`{kind}` served, {len(texts):,} texts", timings.text(kind))
        for kind in KINDS
    ]
    return Row(lines, timings.numbers())


def _serving_step(classify: Any, texts: Any) -> Step:
    return lambda: classify(texts=texts)["probabilities"].numpy()

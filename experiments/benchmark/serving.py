"""SavedModels: a language model, its n-gram and their mixture, by size and speed.

    python -m experiments.benchmark.serving '{"path": "..."}'

prints the memory of a process that loads one and answers, as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from experiments.benchmark.preset import Preset
from experiments.benchmark.processes import STATUS, in_a_process, mebibytes, resident
from experiments.benchmark.stream import Stream
from experiments.benchmark.timing import Line, Row, Timings

_ORDER, _MU = 5, 0.2
_WORDS, _NEW = 100, 20


@dataclasses.dataclass(frozen=True)
class Point:
    """What one process measures: the SavedModel at `path`."""

    path: str
    text: str


def measure(
    preset: Preset, load: Callable[[], Stream], rounds: int, seeds: tuple[int, ...]
) -> Row:
    """Exports a model, Kneser-Ney of order 5 and their mixture, and asks each in turn.

    Timed are `score` of a text of 100 words and `generate` of 20 more; memory is what
    loading and one answer add to a fresh process with TensorFlow.
    """
    import tensorflow as tf

    from rlm_tf.data import Vocabulary
    from rlm_tf.models import RecurrentLanguageModel
    from rlm_tf.restricted import KneserNey
    from rlm_tf.serving import export_language_model

    stream, width = load(), preset.widths[0]
    tokens = stream.tokens[: preset.fit_tokens]
    names = ["<eos>", *(f"w{i}" for i in range(1, stream.vocabulary_size))]
    vocabulary = Vocabulary(names, "whitespace")
    began = time.perf_counter()
    n_gram = KneserNey(_ORDER).fit(tokens, stream.vocabulary_size).with_floor(1e-3)
    fitted = time.perf_counter() - began
    model = RecurrentLanguageModel(stream.vocabulary_size, width, 2, seed=seeds[0])
    wanted: dict[str, tuple[Any, Any]] = {
        "model": (model, None),
        "n-gram": (n_gram, None),
        "mixture": (model, (n_gram, _MU)),
    }
    text = vocabulary.decode(tokens[:_WORDS])
    sizes: dict[str, float] = {}
    memory: dict[str, list[float]] = {}
    steps = {}
    timings = Timings()
    with tempfile.TemporaryDirectory() as folder:
        for name, (served, mixture) in wanted.items():
            path = pathlib.Path(folder) / name
            export_language_model(served, vocabulary, path, mixture=mixture)
            files = [file for file in path.rglob("*") if file.is_file()]
            sizes[name] = sum(file.stat().st_size for file in files) / 1e6
            loaded = tf.saved_model.load(str(path))
            steps[f"{name}, score"] = _score(loaded, text)
            steps[f"{name}, generate"] = _generate(loaded, text)
            if STATUS.is_file():
                memory[name] = [
                    in_a_process(__spec__.name, Point(str(path), text))["added_mib"]
                    for _ in range(preset.memory_processes)
                ]
        timings.run(steps, rounds)
    lines = []
    for name, what in (("n-gram", "alone"), ("mixture", f"with 2 x {width} LSTM")):
        about = f"SavedModel, Kneser-Ney {_ORDER} of {len(tokens):,} tokens, {what}"
        lines += [
            Line(
                f"{about}: size",
                f"{sizes[name]:.1f} MB",
                f"LSTM alone: {sizes['model']:.1f} MB",
                f"{sizes[name] / sizes['model']:.2f}",
            ),
            *(
                Line(
                    f"{about}: {shown}",
                    timings.text(f"{name}, {kind}"),
                    f"LSTM alone: {timings.text(f'model, {kind}')}",
                    timings.ratio(f"{name}, {kind}", f"model, {kind}"),
                )
                for kind, shown in (
                    ("score", f"score of {_WORDS} words"),
                    ("generate", f"{_NEW} words after {_WORDS}"),
                )
            ),
        ]
        if memory:
            lines.append(
                Line(
                    f"{about}: memory of loading and an answer",
                    mebibytes(memory[name]),
                    f"LSTM alone: {mebibytes(memory['model'])}",
                )
            )
    return Row(
        lines,
        {
            "corpus": stream.name,
            "fit_tokens": len(tokens),
            "fit_seconds": fitted,
            "megabytes": sizes,
            "memory_mib": memory,
            "times": timings.numbers(),
        },
    )


def _score(loaded: Any, text: str) -> Callable[[], Any]:
    import tensorflow as tf

    texts = tf.constant([text])
    return lambda: loaded.score(texts)["total"].numpy()


def _generate(loaded: Any, text: str) -> Callable[[], Any]:
    import tensorflow as tf

    prompts = tf.constant([text])
    return lambda: loaded.generate(prompts, _NEW, 1.0, 0, 0.95, 0.0, 1.0, 0.0, 1)[
        "text"
    ].numpy()


# === In the process ===


def added_memory(point: Point) -> dict[str, float]:
    """Returns what loading a SavedModel and an answer add to the resident set."""
    import tensorflow as tf

    tf.constant(1.0).numpy()
    before = resident("VmRSS")
    loaded = tf.saved_model.load(point.path)
    loaded.score(tf.constant([point.text]))["total"].numpy()
    return {"added_mib": resident("VmHWM") - before}


if __name__ == "__main__":
    from rlm_tf.command_line.quiet import silence_tensorflow

    silence_tensorflow()
    print(json.dumps(added_memory(Point(**json.loads(sys.argv[1])))))

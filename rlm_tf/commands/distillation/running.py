"""`rlm_tf distil`, from the teacher's files to the table."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.run_folder import claim
from rlm_tf.commands.distillation.claimed import FILE
from rlm_tf.commands.distillation.classifiers import PREPARED
from rlm_tf.commands.distillation.distilling import distil
from rlm_tf.commands.distillation.language import adam
from rlm_tf.commands.distillation.results import Distilled
from rlm_tf.commands.distillation.settings import DistilSettings, share_of
from rlm_tf.commands.model_folder import VOCABULARY, load_folder
from rlm_tf.commands.settings import EMBEDDED, SETTINGS, TrainSettings
from rlm_tf.commands.training import reading
from rlm_tf.data import Corpus, Vocabulary, corpus_names, load_corpus
from rlm_tf.data.text.corpora import encoded_corpus
from rlm_tf.distillation import KD
from rlm_tf.file_errors import naming
from rlm_tf.loading import load_model
from rlm_tf.serving import export_classifier, export_language_model
from rlm_tf.serving.export_path import check_export_path

_RESULTS = "results.json"
_STUDENT = "student.keras"
_FILES = (
    *(_RESULTS, _STUDENT, VOCABULARY, "alone", "student", "predictions"),
    *(FILE, PREPARED),
)
# What `rlm_tf train` has read, of its settings.
_OF_TEXT = ("text", "valid", "test", "count_text", "most_megabytes")
# Settings that say nothing of what is trained.
_NO_SETTINGS = ("output_dir", "export", "resume", "overwrite")
_ARRAYS = tuple(f"{kind}_{split}" for split in reading.SPLITS for kind in "xy")


def run(settings: DistilSettings) -> None:
    """Distils, exports, and prints the table; a killed run goes on."""
    folder = pathlib.Path(settings.output_dir)
    with run_lock.held(folder.absolute()):
        _run(settings, folder)


def _run(settings: DistilSettings, folder: pathlib.Path) -> None:
    teachers: list[keras.Model] = []
    student: Any = None
    data: dict[str, Any]
    if settings.digits:
        data, digest = {}, "digits"
    elif settings.arrays is not None:
        data, digest = _arrays(settings)
    else:
        teachers, vocabulary, text = _teachers(settings)
        corpus = (
            _corpus(settings.corpus, vocabulary)
            if settings.corpus is not None
            else _as_trained(settings.teacher[0], text, vocabulary)
        )
        data, digest = {"train": corpus}, _digest(corpus.train)
    if _is_done(settings, folder, digest):
        print(read_json(folder / _RESULTS, "give --overwrite", ["table"])["table"])
        print(f"done before: {folder} (--overwrite distils anew)")
        if not pathlib.Path(str(settings.export)).exists():
            _export(load_model(folder / _STUDENT, compile=False), data, settings)
            print(f"served: {settings.export}")
        return
    trained_before = settings.resume and (folder / _STUDENT).exists()
    if not trained_before:
        check_export_path(str(settings.export), settings.overwrite)
    if settings.digits:
        from rlm_tf.commands.distillation import digits_demo

        teacher, student, data = digits_demo.prepare(settings.seed)
        teachers = [teacher]
    elif settings.arrays is not None:
        teachers, _, _ = _teachers(settings)
    if student is None:
        share = share_of(settings)
        student = _student(settings, data) if share is None else share
    temperature = settings.temperature
    if temperature is None:
        temperature = 4.0 if settings.arrays is not None or settings.digits else 1.0
    optimizer = None
    if settings.learning_rate is not None:
        is_text = isinstance(data.get("train"), Corpus)
        optimizer = (adam if is_text else keras.optimizers.Adam)(settings.learning_rate)
    found = distil(
        teachers,
        student,
        **data,
        losses=[(KD(temperature), settings.weight)],
        student_weight=settings.student_weight,
        epochs=settings.epochs,
        optimizer=optimizer,
        folder=folder,
        batch_size=settings.batch_size,
        window=settings.window,
        overwrite=settings.overwrite,
        seed=settings.seed,
        verbose=1,
    )
    _finish(found, data, folder, settings)


def _student(settings: DistilSettings, data: dict[str, Any]) -> keras.Model:
    """Returns the student of a file.

    Raises:
        ValueError: If the words beside it are not those of the text.
    """
    path, corpus = str(settings.student), data.get("train")
    own = _vocabulary_beside(pathlib.Path(path))
    words = corpus.vocabulary if isinstance(corpus, Corpus) else None
    if own is not None and words is not None and own.tokens != words.tokens:
        raise ValueError(
            f"--student={path} has another vocabulary than the text: "
            f"{_first_difference(own, words)}."
        )
    return load_model(path, compile=False)


def _is_done(settings: DistilSettings, folder: pathlib.Path, digest: str) -> bool:
    """Whether the folder has this run's results; makes it this run's."""
    wanted = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in dataclasses.asdict(settings).items()
        if name not in _NO_SETTINGS
    }
    # What files hold, not where they are; of earlier versions nobody knows.
    held = {
        f"{name}_sha256": _digest_of_models(paths)
        for name, paths in (
            ("teacher", settings.teacher),
            ("student", (str(settings.student),)),
        )
    }
    return claim(
        folder / SETTINGS,
        {**wanted, **held, "text_sha256": digest},
        _FILES,
        result=_RESULTS,
        overwrite=settings.overwrite,
        resume=settings.resume,
        defaults=held,
    )


def _digest_of_models(paths: Sequence[str]) -> str:
    """Returns a digest of the files of models, and of those in folders."""
    digest = hashlib.sha256()
    for path in map(pathlib.Path, paths):
        files = sorted(path.rglob("*.keras")) if path.is_dir() else [path]
        for file in files:
            if file.is_file():
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _export(student: Any, data: dict[str, Any], settings: DistilSettings) -> None:
    """Exports a student; what an ended process has left there is replaced."""
    corpus, path = data.get("train"), str(settings.export)
    with native_silence():
        if isinstance(corpus, Corpus):
            export_language_model(student, corpus.vocabulary, path, overwrite=True)
        else:
            export_classifier(student, path, overwrite=True)


def _finish(
    found: Distilled,
    data: dict[str, Any],
    folder: pathlib.Path,
    settings: DistilSettings,
) -> None:
    corpus = data.get("train")
    with naming(folder / _STUDENT):
        found.student.save(folder / _STUDENT)
    if isinstance(corpus, Corpus):
        corpus.vocabulary.save(folder / VOCABULARY)
    _export(found.student, data, settings)
    table = found.table()
    rows = [row._asdict() for row in found.rows]
    write_json(folder / _RESULTS, {"table": table, "rows": rows})
    print(table)
    _, alone, student = found.rows
    if student.nll >= alone.nll:
        print(
            "the student alone is no worse: the teacher does not help here; try "
            "another --temperature or --weight, or more --epochs"
        )
    print(f"student: {folder / _STUDENT}; served: {settings.export}")


def _teachers(
    settings: DistilSettings,
) -> tuple[list[keras.Model], Vocabulary | None, dict[str, Any] | None]:
    """Returns the teachers, their vocabulary, and settings of the first folder."""
    models: list[keras.Model] = []
    vocabulary: Vocabulary | None = None
    text: dict[str, Any] | None = None
    for path in settings.teacher:
        is_folder = pathlib.Path(path).is_dir()
        own: Vocabulary | None
        if is_folder:
            trained = load_folder(path, "rlm_tf distil")
            model, own = trained.model, trained.vocabulary
            if trained.mu is not None or trained.temperature != 1:
                print(
                    f"{path}: its model teaches as it is, without the n-gram and the "
                    "temperature that were found on validation text",
                    flush=True,
                )
        else:
            model = load_model(path, compile=False)
            own = _vocabulary_beside(pathlib.Path(path))
        models.append(model)
        if own is not None:
            if vocabulary is not None and own.tokens != vocabulary.tokens:
                raise ValueError(
                    f"--teacher={path} has another vocabulary than those before: "
                    f"{_first_difference(own, vocabulary)}."
                )
            vocabulary = own
        if is_folder and text is None:
            written = read_json(
                pathlib.Path(path) / SETTINGS, "train it again", ["text"]
            )
            text = written
    return models, vocabulary, text


def _vocabulary_beside(path: pathlib.Path) -> Vocabulary | None:
    """Returns the vocabulary in the folder of a model's file, if there is one.

    Models do not keep their words; the commands write them beside.
    """
    beside = path.with_name(VOCABULARY)
    if not beside.is_file():
        return None
    with native_silence():
        return Vocabulary.load(beside)


def _first_difference(found: Vocabulary, expected: Vocabulary) -> str:
    pairs = zip(found.tokens, expected.tokens, strict=False)
    for place, (own, other) in enumerate(pairs):
        if own != other:
            return f"token {place} is {own!r} and {other!r}"
    return f"there are {len(found):,} and {len(expected):,} tokens"


def _as_trained(
    folder: str, written: dict[str, Any] | None, vocabulary: Vocabulary | None
) -> Corpus:
    """Returns the text of a folder's training in the splits that it had there.

    Raises:
        ValueError: If there is no folder, or a file of it is another one now.
    """
    if written is None or vocabulary is None:
        raise ValueError(
            f"--teacher={folder} does not say what it was trained on; give --corpus."
        )
    known = {name: written[name] for name in _OF_TEXT if name in written}
    texts = reading.read_texts(TrainSettings(**known))
    digest = written.get("text_sha256")
    if digest is not None and digest != reading.digest_of(texts):
        raise ValueError(
            f"--teacher={folder} was trained on another text than {known['text']} is "
            "now; give --corpus."
        )
    paths = {
        split: str(known.get(name) or known["text"])
        for split, name in zip(reading.SPLITS, ("text", "valid", "test"), strict=True)
    }
    with native_silence():
        return encoded_corpus(known["text"], texts.splits, vocabulary, paths)


def _corpus(name: str, vocabulary: Vocabulary | None) -> Corpus:
    """Returns a text under the teacher's vocabulary, or a corpus under its own.

    Raises:
        ValueError: If a corpus has other words than the teacher.
    """
    # The embedded text is one that folders may have read in other pieces.
    is_corpus = name in corpus_names() and name != EMBEDDED
    if vocabulary is None or is_corpus:
        corpus = load_corpus(name)
        if vocabulary is not None and corpus.vocabulary.tokens != vocabulary.tokens:
            raise ValueError(
                f"--corpus={name} has another vocabulary than --teacher: "
                f"{_first_difference(corpus.vocabulary, vocabulary)}; a text file is "
                "read by the teacher's."
            )
        return corpus
    texts = reading.read_texts(TrainSettings(text=name))
    paths = dict.fromkeys(reading.SPLITS, name)
    with native_silence():
        return encoded_corpus(name, texts.splits, vocabulary, paths)


def _arrays(settings: DistilSettings) -> tuple[dict[str, Any], str]:
    """Returns train, valid and test arrays, and what tells them from others."""
    try:
        with np.load(str(settings.arrays), allow_pickle=False) as file:
            given = {name: file[name] for name in file.files}
    except (ValueError, AttributeError, OSError) as error:
        raise ValueError(
            f"--arrays={settings.arrays} cannot be read: expected an .npz file of "
            "numpy.savez, of numbers."
        ) from error
    if {"x", "y"} <= set(given) and "x_train" not in given:
        x, y = given["x"], given["y"]
        order = np.random.default_rng(settings.seed).permutation(len(x))
        first, second = int(0.8 * len(x)), int(0.9 * len(x))
        for split, rows in zip(
            reading.SPLITS, np.split(order, [first, second]), strict=True
        ):
            given |= {f"x_{split}": x[rows], f"y_{split}": y[rows]}
    missing = [name for name in _ARRAYS[:4] if name not in given]
    if missing:
        raise ValueError(
            f"--arrays={settings.arrays} lacks {', '.join(missing)}; it has "
            f"{', '.join(sorted(given))}. Expected x_train, y_train, x_valid, y_valid, "
            "and perhaps x_test, y_test; or x and y."
        )
    data: dict[str, Any] = {}
    for split in reading.SPLITS:
        names = (f"x_{split}", f"y_{split}")
        if not set(names) <= set(given):
            continue
        data[split] = tuple(given[name] for name in names)
        if not len(data[split][0]):
            raise ValueError(
                f"--arrays={settings.arrays}: there are no examples for {split}; x and "
                f"y are cut 8:1:1 and have {len(given.get('x', ()))} rows."
                if "x" in given
                else f"--arrays={settings.arrays}: x_{split} is empty."
            )
        if len(data[split][0]) != len(data[split][1]):
            raise ValueError(
                f"--arrays={settings.arrays}: x_{split} has {len(data[split][0])} "
                f"examples and y_{split} {len(data[split][1])}."
            )
    digest = "".join(_digest(each) for pair in data.values() for each in pair)
    return data, hashlib.sha256(digest.encode()).hexdigest()


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

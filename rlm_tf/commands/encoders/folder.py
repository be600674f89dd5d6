"""Folders of encoders and classifiers: what commands write and others read."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from typing import Any, NamedTuple

import keras

from rlm_tf.command_line.json_files import read_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.commands.encoders.fitting import CHECKPOINTS, METRICS
from rlm_tf.commands.encoders.settings import ENCODER, RESULTS, check_encoder_folder
from rlm_tf.data import Vocabulary
from rlm_tf.loading import load_model

PLAN = "plan.json"
MODEL = "model.keras"
VOCABULARY = "vocabulary.txt"
SAVED_MODEL = "saved_model"
# What a run writes beside its settings; with --overwrite it is removed before.
RUN_FILES = (
    RESULTS,
    PLAN,
    VOCABULARY,
    MODEL,
    SAVED_MODEL,
    METRICS,
    CHECKPOINTS,
    "report.md",
    "report.html",
    "report_files",
)
# Settings that say nothing of what is trained.
_NO_SETTINGS = ("output_dir", "resume", "overwrite")


class TrainedEncoder(NamedTuple):
    """What a folder of `rlm_tf pretrain` holds.

    Attributes:
        model: `Electra` or `MaskedLanguageModel`.
        vocabulary: Its vocabulary.
        length: Tokens of the rows that it was trained on.
        sha256: Of the file of the model.
        results: What was measured.
    """

    model: keras.Model
    vocabulary: Vocabulary
    length: int
    sha256: str
    results: dict[str, Any]


def load_encoder(path: str | pathlib.Path) -> TrainedEncoder:
    """Returns what a folder of `rlm_tf pretrain` holds.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If there is no trained encoder, a file is damaged, or the
            vocabulary is another than that of the encoder.
    """
    folder = check_encoder_folder("encoder", str(path), "rlm_tf pretrain")
    remedy = "let `rlm_tf pretrain --overwrite` write it anew"
    if "best_epoch" in read_json(folder / RESULTS, remedy):
        inner = folder / ENCODER
        where = f"its encoder is in {inner}" if inner.is_dir() else "it has none"
        raise ValueError(f"--encoder={folder} is a classifier; {where}.")
    results = read_json(folder / RESULTS, remedy, ("vocabulary_sha256", "plan.length"))
    with native_silence():
        vocabulary = Vocabulary.load(folder / VOCABULARY)
    if digest_of(vocabulary) != results["vocabulary_sha256"]:
        raise ValueError(
            f"{folder / VOCABULARY} is not the vocabulary that the encoder of {folder} "
            "was trained with: some words differ."
        )
    return TrainedEncoder(
        load_model(folder / MODEL, compile=False),
        vocabulary,
        results["plan"]["length"],
        hashlib.sha256((folder / MODEL).read_bytes()).hexdigest(),
        results,
    )


def digest_of(vocabulary: Vocabulary) -> str:
    """Returns a digest of the words of a vocabulary, in their order."""
    return hashlib.sha256("\n".join(vocabulary.tokens).encode()).hexdigest()


def settings_that_count(settings: Any) -> dict[str, Any]:
    """Returns the settings that another run in the same folder must share."""
    given = dataclasses.asdict(settings)
    return {name: given[name] for name in given if name not in _NO_SETTINGS}

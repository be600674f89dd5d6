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
from rlm_tf.commands.encoders.settings import (
    ENCODER,
    RESULTS,
    SETTINGS,
    check_encoder_folder,
    is_published,
)
from rlm_tf.data import Vocabulary
from rlm_tf.layers import TransformerEncoder
from rlm_tf.loading import load_model
from rlm_tf.models import Electra, MaskedLanguageModel
from rlm_tf.models.encoders.published_bert import read_bert, weights_of

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
    """What a folder of `rlm_tf pretrain`, or of a published BERT, holds.

    Attributes:
        model: `Electra` or `MaskedLanguageModel`.
        vocabulary: Its vocabulary.
        sha256: Of the file of the model.
        is_published: Whether it is a published BERT.
        knows_pairs: Whether it was trained on rows of two texts.
        has_learnt: Whether it knows more than frequencies of words.
    """

    model: keras.Model
    vocabulary: Vocabulary
    sha256: str
    is_published: bool
    knows_pairs: bool
    has_learnt: bool = True


def load_encoder(path: str | pathlib.Path) -> TrainedEncoder:
    """Returns what a folder of `rlm_tf pretrain`, or of a published BERT, holds.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If there is no trained encoder, a file is damaged, or model and
            vocabulary are others than those that were trained.
    """
    if is_published(path):
        with native_silence():
            bert = read_bert(path)
        return TrainedEncoder(
            bert.model, bert.vocabulary, file_digest(weights_of(path)), True, True
        )
    folder = check_encoder_folder("encoder", str(path), "rlm_tf pretrain")
    remedy = "let `rlm_tf pretrain --overwrite` write it anew"
    if "best_epoch" in read_json(folder / RESULTS, remedy):
        inner = folder / ENCODER
        where = f"its encoder is in {inner}" if inner.is_dir() else "it has none"
        raise ValueError(f"--encoder={folder} is a classifier; {where}.")
    results = read_json(folder / RESULTS, remedy, ("vocabulary_sha256",))
    for name in (VOCABULARY, MODEL):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"--encoder={folder} has no {name}; {remedy}.")
    with native_silence():
        vocabulary = Vocabulary.load(folder / VOCABULARY)
        digest = digest_of(vocabulary)
    if digest != results["vocabulary_sha256"]:
        raise ValueError(
            f"{folder / VOCABULARY} is not the vocabulary that the encoder of {folder} "
            "was trained with: some words differ."
        )
    digest = file_digest(folder / MODEL)
    if results.get("model_sha256", digest) != digest:
        raise ValueError(
            f"{folder / MODEL} is not the model that was trained in {folder}; {remedy}."
        )
    model = load_model(folder / MODEL, compile=False)
    if not isinstance(model, Electra | MaskedLanguageModel):
        raise ValueError(
            f"{folder / MODEL}: expected an Electra or a MaskedLanguageModel, found "
            f"{type(model).__name__}."
        )
    size = encoder_of(model).vocabulary_size
    if size != len(vocabulary):
        raise ValueError(
            f"{folder / MODEL} knows {size:,} tokens and {folder / VOCABULARY} has "
            f"{len(vocabulary):,}: they are of two encoders."
        )
    known = read_json(folder / SETTINGS, remedy)
    knows_pairs = bool(known.get("two_texts"))
    has_learnt = results.get("has_learnt", True)
    return TrainedEncoder(model, vocabulary, digest, False, knows_pairs, has_learnt)


def encoder_of(model: keras.Model) -> TransformerEncoder:
    """Returns the encoder that was trained, to be fine-tuned."""
    return model.encoder() if isinstance(model, Electra) else model.encoder


def encoder_digest(path: str | pathlib.Path) -> str:
    """Returns the digest of the weights' file of an encoder's folder.

    Raises:
        ValueError: If no command has written one there.
    """
    if is_published(path):
        return file_digest(weights_of(path))
    folder = check_encoder_folder("encoder", str(path), "rlm_tf pretrain")
    return file_digest(folder / MODEL)


def file_digest(path: pathlib.Path) -> str:
    """Returns a digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(vocabulary: Vocabulary) -> str:
    """Returns a digest of the words of a vocabulary, in their order."""
    return hashlib.sha256("\n".join(vocabulary.tokens).encode()).hexdigest()


def settings_that_count(settings: Any) -> dict[str, Any]:
    """Returns the settings that another run in the same folder must share."""
    given = dataclasses.asdict(settings)
    return {name: given[name] for name in given if name not in _NO_SETTINGS}

"""Writes encoders, and what is built on them, as SavedModels that answer strings."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.labelled.encoded_rows import encoded_rows
from rlm_tf.data.text.special_tokens import MASK, special_ids
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models.encoders.electra import Electra
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel
from rlm_tf.models.encoders.sequence_classifier import SequenceClassifier
from rlm_tf.serving.arguments import readable_tokens
from rlm_tf.serving.encoders.classifier_service import ClassifierService
from rlm_tf.serving.encoders.encoder_service import (
    ElectraService,
    EncoderService,
    MaskedLanguageService,
)
from rlm_tf.serving.export_answers import relative_difference
from rlm_tf.serving.saved_model import (
    check_export_path,
    check_weights,
    write_saved_model,
)

_NAME = "export_encoder"


def export_encoder(
    model: keras.Model,
    vocabulary: Vocabulary,
    path: str | os.PathLike[str],
    *,
    length: int,
    labels: Sequence[str] = (),
    pairs: bool = False,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a SavedModel with `embed` and what else the model can do.

    A `MaskedLanguageModel` has `fill_mask`; `Electra` that of its generator, and
    `token_scores`; a `SequenceClassifier` has `classify`. Who loads it imports
    `tensorflow_text` before.

    It is compared with `model` before it takes its place: see `write_saved_model`.

    Args:
        model: One of these.
        vocabulary: The vocabulary that it was trained with.
        path: Directory to be made; parents are made too.
        length: Of the window, [CLS] and [SEP] included.
        labels: Names of a classifier's classes.
        pairs: Whether a classifier is one of pairs of texts.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: If there is something at `path` that may not be replaced.
        ValueError: If model, vocabulary or labels do not belong together, a weight is
            not finite, or the SavedModel's numbers are not the model's.
    """
    check_integer(_NAME, "length", length, 5)
    path = pathlib.Path(path)
    check_export_path(path, overwrite)
    service = _service(model, vocabulary, length, labels, pairs)
    for encoder in _encoders(model):
        if encoder.most_tokens is not None and length > encoder.most_tokens:
            raise ValueError(
                f"{_NAME}: `length` must be at most {encoder.most_tokens}, what the "
                f"encoder reads, found {length}."
            )
    check_weights(_NAME, model.weights)

    def check(written: pathlib.Path) -> None:
        _check_numbers(written, model, vocabulary, length, pairs)

    return write_saved_model(
        service, service.signatures(), path, check, service.requests(), overwrite
    )


def _service(
    model: keras.Model,
    vocabulary: Vocabulary,
    length: int,
    labels: Sequence[str],
    pairs: bool,
) -> EncoderService:
    if isinstance(model, SequenceClassifier):
        return ClassifierService(model, vocabulary, length, labels, pairs)
    if isinstance(model, Electra):
        return ElectraService(model, vocabulary, length)
    if isinstance(model, MaskedLanguageModel):
        return MaskedLanguageService(model, vocabulary, length)
    raise ValueError(
        f"{_NAME}: `model` must be a MaskedLanguageModel, an Electra or a "
        f"SequenceClassifier, found {type(model).__name__}."
    )


def _encoders(model: keras.Model) -> list[TransformerEncoder]:
    if isinstance(model, Electra):
        return [model.generator.encoder, model.discriminator]
    return [model.encoder]


def _check_numbers(
    directory: pathlib.Path,
    model: keras.Model,
    vocabulary: Vocabulary,
    length: int,
    pairs: bool,
) -> None:
    """Raises ValueError unless the answers are those of Keras."""
    rng = np.random.default_rng(0)
    tokens = readable_tokens(vocabulary)
    texts = [vocabulary.decode(rng.choice(tokens, size)) for size in (length // 2, 3)]
    rows = encoded_rows(
        vocabulary.graph_tables(),
        special_ids(vocabulary),
        tf.constant(texts),
        tf.constant(texts[::-1]) if pairs else None,
        length,
    )
    signatures = tf.saved_model.load(str(directory)).signatures
    batch = tf.constant(texts)
    if isinstance(model, SequenceClassifier):
        given = {"texts": batch}
        if pairs:
            given["texts_b"] = batch[::-1]
        found = signatures["classify"](**given)
        expected = tf.cast(model((rows.tokens, rows.segments)), tf.float32)
        name = "values" if model.is_regression else "probabilities"
        wanted = expected if model.is_regression else tf.nn.softmax(expected)
        compared = found[name].numpy(), wanted.numpy()
    elif isinstance(model, Electra):
        found = signatures["token_scores"](texts=batch)["probabilities"].numpy()
        logits = tf.cast(model((rows.tokens, rows.segments)), tf.float32)
        wanted = tf.sigmoid(logits).numpy()[:, 1 : 1 + found.shape[1]]
        compared = found, np.where(found > 0, wanted, 0)
    else:
        best = signatures["fill_mask"](texts=tf.constant([MASK]), k=tf.constant(1))
        ids = special_ids(vocabulary)
        row = tf.constant([[ids.cls, ids.mask, ids.sep]])
        logits = tf.cast(model(row), tf.float32)[0, 1].numpy()
        logits[[*vocabulary.never_in_text, vocabulary.eos_id]] = -np.inf
        wanted = tf.nn.softmax(logits).numpy().max()
        compared = best["probabilities"].numpy()[0, 0], np.array([wanted])
    tolerance = 1e-4 if model.compute_dtype in ("float32", "float64") else 0.05
    worst = float(np.max(relative_difference(*compared)))
    if not worst <= tolerance:
        raise ValueError(
            f"{_NAME}: the SavedModel's answers differ from the model's by up to "
            f"{worst:.3g} (relative), more than {tolerance:g}; nothing was written."
        )

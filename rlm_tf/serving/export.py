"""Writes a language model as a SavedModel that answers strings."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.evaluation.log_probs import log_softmax_at
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.models.language.stateful_language_model import StatefulLanguageModel
from rlm_tf.numerics import at_least_single
from rlm_tf.serving.arguments import readable_tokens
from rlm_tf.serving.language_model_service import LanguageModelService
from rlm_tf.serving.saved_model import (
    check_export_path,
    check_weights,
    write_saved_model,
)

_CHECKED_TOKENS = 300  # longer than a window of the scoring loop
# Texts are compared up to where the last bit of the weights changes so much.
_CHAOS = 1e-3
# Logits that are in memory at once, and words whose sensitivity is looked at.
_LOGITS = 2**24
_WORDS = 10_000


def export_language_model(
    model: keras.Model,
    vocabulary: Vocabulary,
    path: str | os.PathLike[str],
    *,
    context_length: int | None = None,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a SavedModel with the signatures `score`, `next_token` and `generate`.

    What they take and return is described in `LanguageModelService`. The SavedModel
    holds the weights of the language model and the vocabulary; optimiser, carried
    states, restricted models and training texts stay behind. It consists of operations
    of plain TensorFlow, so `import tensorflow` and an unmodified TensorFlow Serving
    load it, on any device.

    It is compared with `model` before it takes its place: see `write_saved_model`.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens `[B, T]` to logits `[B, T, V]`.
        vocabulary: The vocabulary that the model was trained with.
        path: Directory to be made; parents are made too.
        context_length: Most tokens that a model without states is run on; such a
            model needs it.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: If there is something at `path` that may not be replaced.
        ValueError: If model and vocabulary do not belong together, if a model without
            states comes without `context_length`, if a weight holds NaN or infinity
            (but minus infinity in a bias, which forbids a word), if the graph has
            operations that need XLA or a GPU, if TensorFlow could not read files of
            that name, or if the SavedModel's numbers are not the model's.
    """
    for name, value, kind in (
        ("model", model, keras.Model),
        ("vocabulary", vocabulary, Vocabulary),
    ):
        if not isinstance(value, kind):
            raise ValueError(
                f"export_language_model: `{name}` must be a {kind.__name__}, found "
                f"{type(value).__name__}."
            )
    path = pathlib.Path(path)
    check_export_path(path, overwrite)
    model = language_model_of(model)
    tables = not isinstance(model, StatefulLanguageModel)
    check_weights("export_language_model", model.weights, tables=tables)
    model = _portable_model(model)
    service = LanguageModelService(model, vocabulary, context_length=context_length)

    def check(written: pathlib.Path) -> None:
        _check_numbers(written, model, vocabulary, context_length)

    return write_saved_model(
        service, service.signatures(), path, check, service.requests(), overwrite
    )


# === Checks ===


def _portable_model(model: keras.Model) -> keras.Model:
    """Returns the model, or a copy that asks neither XLA nor cuDNN of its server."""
    layers = getattr(model, "recurrent_layers", [])
    forced = getattr(model, "jit_loop", None) is True
    if not forced and not any(layer.uses_cudnn for layer in layers):
        return model
    copy = type(model).from_config({**model.get_config(), "jit_loop": False})
    for layer in copy.recurrent_layers:
        layer.use_own_loop()
    copy.set_weights(model.get_weights())
    return copy


def _check_numbers(
    directory: pathlib.Path,
    model: keras.Model,
    vocabulary: Vocabulary,
    context_length: int | None,
) -> None:
    """Raises ValueError unless the signatures give the Keras model's numbers.

    `score` is compared word by word, `next_token` at the end of each text, and
    `generate` must go on with the most probable word when it is told to. Recurrence may
    be chaotic, so that rounding errors grow from word to word: what the last bit of the
    weights changes is no fault of the SavedModel.
    """
    length = min(_CHECKED_TOKENS, context_length or _CHECKED_TOKENS)
    # Only tokens that are read back as they are written, and room for `<eos>`.
    rng = np.random.default_rng(0)
    ids = rng.choice(readable_tokens(vocabulary), length - 1)
    grown = _sensitivity(model, np.concatenate([[vocabulary.eos_id], ids]))
    length = max(1, int(np.searchsorted(grown, _CHAOS)))
    ids = ids[: length - 1]
    # Subwords of a text may be others than those that it was made of, and more.
    while len(vocabulary.encode(vocabulary.decode(ids))) >= length > 1:
        ids = ids[:-1]
    texts = [vocabulary.decode(ids[:end]) for end in (length, length // 2, 0)]
    parts = [vocabulary.encode(text) for text in texts]
    read = np.concatenate([[vocabulary.eos_id], parts[0]])
    grown = _sensitivity(model, read) if len(read) != length else grown
    signatures = tf.saved_model.load(str(directory)).signatures
    batch = tf.constant(texts)
    found = signatures["score"](texts=batch)["log_probs"].numpy()
    best = signatures["next_token"](texts=batch, k=tf.constant(1))
    greedy = signatures["generate"](
        prompts=batch,
        max_tokens=tf.constant(1),
        temperature=tf.constant(0.0),
        top_k=tf.constant(0),
        top_p=tf.constant(1.0),
        eta=tf.constant(0.0),
        typical_p=tf.constant(1.0),
        calibration=tf.constant(0.0),
        seed=tf.constant(0),
    )["text"].numpy()
    # Half precision rounds each product; only gross errors can be told from that.
    exact = model.compute_dtype in ("float32", "float64")
    tolerance = 1e-5 if exact else 0.05
    errors: list[float] = []
    for row, tokens in enumerate(parts):
        read = np.concatenate([[vocabulary.eos_id], tokens])
        expected, next_probs = _predictions(model, read)
        error = _difference(found[row, : len(tokens)], expected)
        # Ten times what the last bit of all weights does counts as nothing.
        *allowed, last = np.maximum(10.0 * grown[: len(tokens) + 1] / tolerance, 1.0)
        errors.extend(error / allowed)
        name = best["tokens"].numpy()[row, 0].decode()
        top = vocabulary.tokens.index(name)
        drawn = np.array(next_probs)
        drawn[[*vocabulary.never_in_text]] = -1.0
        said = top if drawn[top] >= 0 else int(np.argmax(drawn))
        errors += [
            (next_probs.max() - next_probs[top]) / last,
            np.abs(best["probabilities"].numpy()[row, 0] - next_probs[top]) / last,
            float(greedy[row].decode("utf-8", "replace") != vocabulary.decode([said])),
        ]
    # Of NumPy's: Python's maximum drops NaN.
    worst = np.max(errors)
    if not worst <= tolerance:
        raise ValueError(
            "export_language_model: the SavedModel's answers differ from the model's "
            f"by up to {worst:.3g} (relative), more than {tolerance:g}; nothing was "
            "written. A model without states must be causal."
        )


def _difference(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Returns relative differences; a word that must not come has none."""
    same = np.isneginf(found) & np.isneginf(expected)
    found, expected = np.where(same, 0.0, found), np.where(same, 0.0, expected)
    return np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)


def _logits(model: keras.Model, ids: np.ndarray) -> Iterator[tf.Tensor]:
    """Yields the logits `[b, V]` after each of the tokens `[N]`, block by block.

    A recurrent model's output layer is applied to few positions at a time: all logits
    of a large vocabulary take gigabytes.
    """
    tokens = tf.constant(ids[np.newaxis], tf.int32)
    if not isinstance(model, StatefulLanguageModel):
        yield model(tokens, training=False)[0]
        return
    features = model.features(tokens)
    size = int(model.output_logits(features[:, :1]).shape[-1])
    block = max(1, _LOGITS // size)
    for first in range(0, len(ids), block):
        yield model.output_logits(features[:, first : first + block])[0]


def _predictions(model: keras.Model, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns log-probabilities `[N - 1]` of tokens and probabilities `[V]` after all.

    Args:
        model: The Keras model.
        ids: Tokens `[N]`, of which the first is only read.
    """
    log_probs, first = [], 0
    targets = np.append(ids[1:], 0)
    for logits in _logits(model, ids):
        block = targets[first : first + len(logits)]
        log_probs.append(log_softmax_at(logits, tf.constant(block)).numpy())
        first += len(logits)
    next_probs = tf.nn.softmax(tf.cast(logits[-1], tf.float32)).numpy()
    return np.concatenate(log_probs)[:-1], next_probs


def _sensitivity(model: keras.Model, ids: np.ndarray) -> np.ndarray:
    """Returns by how much the last bit of all weights changes answers, at most so far.

    Args:
        model: The Keras model; its weights are put back in the end.
        ids: Tokens `[N]`.

    Returns:
        float64 `[N]`, of log-probabilities after each token, never decreasing; of a
        large vocabulary some words are looked at.
    """

    def log_probs() -> np.ndarray:
        blocks = []
        for logits in _logits(model, ids):
            logits = tf.nn.log_softmax(at_least_single(logits))
            step = -(-logits.shape[-1] // _WORDS)
            blocks.append(logits[:, ::step].numpy())
        return np.concatenate(blocks)

    before = log_probs()
    kept = [weight.numpy() for weight in model.weights]
    try:
        for weight, value in zip(model.weights, kept, strict=True):
            # Not NumPy's own kind: bfloat16.
            if value.dtype.kind in "fV":
                weight.assign((value * (1 + 2.0**-23)).astype(value.dtype))
        relative = _difference(log_probs(), before)
    finally:
        for weight, value in zip(model.weights, kept, strict=True):
            weight.assign(value)
    return np.maximum.accumulate(relative.max(axis=-1).astype(np.float64))

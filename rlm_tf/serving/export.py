"""Writes a language model as a SavedModel that answers strings."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.models import BootstrappedMutualInformation, EnsembleLanguageModel
from rlm_tf.models.bmi.pair_scorer import PairScorer
from rlm_tf.models.language.interface import interface_of, language_model_of
from rlm_tf.models.language.stateful_language_model import StatefulLanguageModel
from rlm_tf.restricted import RestrictedModel
from rlm_tf.serving.arguments import readable_tokens
from rlm_tf.serving.export_answers import ModelAnswers, relative_difference
from rlm_tf.serving.language_model_service import LanguageModelService
from rlm_tf.serving.pair_service import PairService
from rlm_tf.serving.saved_model import (
    check_export_path,
    check_weights,
    write_saved_model,
)

_CHECKED_TOKENS = 300  # longer than a window of the scoring loop
# Texts are compared up to where the last bit of the weights changes so much.
_CHAOS = 1e-3


def export_language_model(
    model: keras.Model | Sequence[keras.Model],
    vocabulary: Vocabulary,
    path: str | os.PathLike[str],
    *,
    context_length: int | None = None,
    mixture: tuple[RestrictedModel, float] | None = None,
    temperature: float = 1.0,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a SavedModel with the signatures `score`, `next_token` and `generate`.

    `generate_default` is `generate` with nothing to choose. A model in
    `BootstrappedMutualInformation` has `score_pairs`, too, with its discriminator.

    What they take and return is described in `LanguageModelService`. The SavedModel
    holds the weights of the language model and the vocabulary, and the tables of the
    restricted model of a mixture; optimiser, carried states, other restricted models
    and training texts stay behind. It consists of operations
    of plain TensorFlow, so `import tensorflow` and an unmodified TensorFlow Serving
    load it, on any device; with a vocabulary of subwords `import tensorflow_text` is
    needed, too, and a server with its operations.

    It is compared with `model` before it takes its place: see `write_saved_model`.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens `[B, T]` to logits `[B, T, V]`; a list of models with
            states, whose mean answers (`EnsembleLanguageModel`); or a restricted model,
            to be served alone.
        vocabulary: The vocabulary that the model was trained with.
        path: Directory to be made; parents are made too.
        context_length: Most tokens that a model without states is run on; such a
            model needs it.
        mixture: A restricted model P and its weight mu in (0, 1): what answers is
            `(1 - mu) Q + mu P`, see `rlm_tf.evaluation.tune_interpolation`.
        temperature: Of the model: Q is `softmax(logits / temperature)`, see
            `rlm_tf.evaluation.search_temperature`. The `temperature` of `generate`
            comes on top of it.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: If there is something at `path` that may not be replaced.
        ValueError: If model and vocabulary do not belong together, if a model without
            states comes without `context_length`, if a weight holds NaN or infinity
            (but minus infinity in a bias, which forbids a word), if a restricted model
            that is served alone gives a word no probability, if the graph has
            operations that need XLA or a GPU, if TensorFlow could not read files of
            that name, or if the SavedModel's numbers are not the model's.
    """
    if isinstance(model, list | tuple):
        model = EnsembleLanguageModel(model)
    _check_kinds(model, vocabulary, mixture)
    if temperature != 1.0 and isinstance(model, RestrictedModel):
        raise ValueError(
            "export_language_model: a restricted model alone has no `temperature`."
        )
    path = pathlib.Path(path)
    check_export_path(path, overwrite)
    pairs = model if isinstance(model, BootstrappedMutualInformation) else None
    if not isinstance(model, RestrictedModel):
        model = language_model_of(model)
        tables = not isinstance(model, StatefulLanguageModel | EnsembleLanguageModel)
        check_weights("export_language_model", model.weights, tables=tables)
        model = _portable_model(model)
    options: dict[str, Any] = {
        "context_length": context_length,
        "mixture": mixture,
        "temperature": temperature,
    }
    if pairs is None:
        service = LanguageModelService(model, vocabulary, **options)
    else:
        service = PairService(model, vocabulary, _scorer(pairs, model), **options)
    if isinstance(model, RestrictedModel):
        _check_floor(model, vocabulary.eos_id)
    answers = ModelAnswers(model, mixture, vocabulary.eos_id, temperature)

    def check(written: pathlib.Path) -> None:
        _check_numbers(written, answers, vocabulary, context_length)
        if pairs is not None:
            _check_pairs(written, pairs, vocabulary)

    return write_saved_model(
        service, service.signatures(), path, check, service.requests(), overwrite
    )


# === Checks ===


def _check_kinds(
    model: Any, vocabulary: Any, mixture: tuple[RestrictedModel, float] | None
) -> None:
    kinds: list[tuple[str, Any, Any, str]] = [
        ("model", model, keras.Model | RestrictedModel, "Model"),
        ("vocabulary", vocabulary, Vocabulary, "Vocabulary"),
    ]
    if mixture is not None:
        if isinstance(model, RestrictedModel):
            raise ValueError(
                "export_language_model: a restricted model alone has no `mixture`."
            )
        kinds.append(("mixture[0]", mixture[0], RestrictedModel, "restricted model"))
    for name, value, kind, expected in kinds:
        if not isinstance(value, kind):
            raise ValueError(
                f"export_language_model: `{name}` must be a {expected}, found "
                f"{type(value).__name__}."
            )


def _check_floor(model: RestrictedModel, prefix: int) -> None:
    """Raises ValueError if some word has no probability: nothing answers -inf."""
    context = np.full([1, model.context_length], prefix, np.int64)
    log_probs = model.log_probs(context).numpy()[0]
    missing = int(np.isneginf(log_probs).sum())
    if missing:
        raise ValueError(
            f"export_language_model: {type(model).__name__} gives {missing:,} of "
            f"{len(log_probs):,} tokens no probability, texts with them would score "
            "-inf; give it a floor (`with_floor`, `rlm_tf.evaluation.tune_floor`)."
        )


def _portable_model(model: keras.Model) -> keras.Model:
    """Returns the model, or a copy that asks neither XLA nor cuDNN of its server."""
    if isinstance(model, EnsembleLanguageModel):
        return EnsembleLanguageModel([_portable_model(each) for each in model.models])
    layers = getattr(model, "recurrent_layers", [])
    forced = getattr(model, "jit_loop", None) is True
    if not forced and not any(layer.uses_cudnn for layer in layers):
        return model
    copy = type(model).from_config({**model.get_config(), "jit_loop": False})
    for layer in copy.recurrent_layers:
        layer.use_own_loop()
    copy.set_weights(model.get_weights())
    return copy


def _scorer(bmi: BootstrappedMutualInformation, model: keras.Model) -> PairScorer:
    """Returns what scores pairs by a model that is going to be exported."""
    view = interface_of(model, bmi.hidden_layers)
    return PairScorer(view, bmi.discriminator, bmi.pooling)


def _check_pairs(
    directory: pathlib.Path, bmi: BootstrappedMutualInformation, vocabulary: Vocabulary
) -> None:
    """Raises ValueError unless `score_pairs` gives the numbers of Keras."""
    rng = np.random.default_rng(0)
    texts = [
        vocabulary.decode(rng.choice(readable_tokens(vocabulary), size))
        for size in (5, 2, 7, 4)
    ]
    found = tf.saved_model.load(str(directory)).signatures["score_pairs"](
        first=tf.constant(texts[:2]), second=tf.constant(texts[2:])
    )
    exact = bmi.compute_dtype in ("float32", "float64")
    for row, pair in enumerate(zip(texts[:2], texts[2:], strict=True)):
        x, y = (_sentence(vocabulary, text) for text in pair)
        for name, expected in (
            ("scores", bmi.pair_scores(x, y)),
            ("log_probs", bmi.scorer.log_probs(x, y)),
        ):
            difference = relative_difference(
                found[name].numpy()[row : row + 1], np.asarray(expected, np.float32)
            )
            if not np.max(difference) <= (1e-4 if exact else 0.05):
                raise ValueError(
                    f"export_language_model: `{name}` of score_pairs differs from the "
                    f"model's by {np.max(difference):.3g} (relative) of the texts "
                    f"{pair[0]!r} and {pair[1]!r}: expected {float(expected[0]):.6g}, "
                    f"found {float(found[name][row]):.6g}; nothing was written."
                )


def _sentence(vocabulary: Vocabulary, text: str) -> np.ndarray:
    """Returns the tokens of a text, int32 `[1, L]`, with an end as `score_pairs`."""
    ids = np.asarray(vocabulary.encode(text), np.int32)
    if not len(ids) or ids[-1] != vocabulary.eos_id:
        ids = np.append(ids, np.int32(vocabulary.eos_id))
    return ids[np.newaxis]


def _check_numbers(
    directory: pathlib.Path,
    model: ModelAnswers,
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
    grown = model.sensitivity(np.concatenate([[vocabulary.eos_id], ids]))
    length = max(1, int(np.searchsorted(grown, _CHAOS)))
    ids = ids[: length - 1]
    # Subwords of a text may be others than those that it was made of, and more.
    while len(vocabulary.encode(vocabulary.decode(ids))) >= length > 1:
        ids = ids[:-1]
    texts = [vocabulary.decode(ids[:end]) for end in (length, length // 2, 0)]
    parts = [vocabulary.encode(text) for text in texts]
    read = np.concatenate([[vocabulary.eos_id], parts[0]])
    grown = model.sensitivity(read) if len(read) != length else grown
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
    exact = model.is_exact
    tolerance = 1e-5 if exact else 0.05
    errors: list[float] = []
    for row, tokens in enumerate(parts):
        read = np.concatenate([[vocabulary.eos_id], tokens])
        expected, next_probs = model.predictions(read)
        error = relative_difference(found[row, : len(tokens)], expected)
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

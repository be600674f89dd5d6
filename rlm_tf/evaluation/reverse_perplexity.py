"""How well real text is predicted by who has read a generated one alone."""

from __future__ import annotations

from typing import NamedTuple

import keras
import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.data import contiguous_batches
from rlm_tf.evaluation.log_probs import target_log_probs
from rlm_tf.layers import LSTMCell
from rlm_tf.models import RegularizedLanguageModel
from rlm_tf.training import LearningRateHalving

_ROWS, _WINDOW = 20, 35
_EVALUATION_ROWS, _EVALUATION_WINDOW = 10, 70
_RATE, _CLIP_NORM, _DROPOUT = 3e-3, 10.0, 0.3
# Times that the rate is halved before training stops.
_DECAYS = 2


class ReversePerplexity(NamedTuple):
    """Perplexities of real text under a model of another text.

    Attributes:
        valid: Of the text that chose the epoch.
        test: Of the other.
        epochs: Of training.
    """

    valid: float
    test: float
    epochs: int


def reverse_perplexity(
    tokens: npt.ArrayLike,
    valid: npt.ArrayLike,
    test: npt.ArrayLike,
    *,
    vocabulary_size: int,
    prefix: int,
    units: int = 200,
    most_epochs: int = 40,
    seed: int = 0,
) -> ReversePerplexity:
    """Trains a language model on a text, and returns the perplexity of real text.

    Low, if the text has the variety of real text and is like it (Zhao et al. 2018; Cao
    and Xu 2019, section 4.2, who say no more of the model than that it is an ordinary
    recurrent one): here an LSTM of one layer, by Adam, whose rate is halved when the
    real validation text is no longer predicted better. Compare texts of one length;
    beside them, real text of that length (as good as it gets) and `unigram_text`.

    Args:
        tokens: int `[N]`, generated or real text to learn from.
        valid: int `[T]`, real text that chooses the epoch.
        test: int `[T]`, real text.
        vocabulary_size: V.
        prefix: The token before the first, `<eos>` as a rule.
        units: Width of the LSTM.
        most_epochs: Passes over the text at most.
        seed: Of weights and dropout.

    Raises:
        ValueError: If ids are not in the vocabulary, a text is too short, or a number
            is out of range.
    """
    name = "reverse_perplexity"
    for option, value in (("units", units), ("most_epochs", most_epochs)):
        check_integer(name, option, value, 1)
    text, valid, test = (
        checked_tokens(name, ids, vocabulary_size, dtype=np.int32)
        for ids in (tokens, valid, test)
    )
    if len(text) < _ROWS:
        raise ValueError(
            f"{name}: the text must have at least {_ROWS} tokens, found {len(text)}."
        )
    model = RegularizedLanguageModel(
        vocabulary_size,
        LSTMCell(units),
        1,
        input_dropout=_DROPOUT,
        output_dropout=_DROPOUT,
        seed=seed,
        clip_norm=_CLIP_NORM,
        loss_scale=float(_WINDOW),
    )
    model.compile(keras.optimizers.Adam(_RATE))
    halving = LearningRateHalving("val_nll", max_decays=_DECAYS)
    sizes = _EVALUATION_ROWS, _EVALUATION_WINDOW
    held = contiguous_batches(valid, *sizes, prefix=prefix)
    history = model.fit(
        contiguous_batches(text, _ROWS, _WINDOW, prefix=prefix).dataset(),
        epochs=most_epochs,
        shuffle=False,
        validation_data=held.dataset(),
        callbacks=[halving],
        verbose=0,
    )
    halving.best.restore(model)

    def perplexity(held_out: np.ndarray) -> float:
        log_probs = target_log_probs(model, held_out, *sizes, prefix=prefix)
        return float(np.exp(-np.mean(log_probs, dtype=np.float64)))

    return ReversePerplexity(perplexity(valid), perplexity(test), len(history.epoch))


def unigram_text(tokens: npt.ArrayLike, length: int, seed: int) -> np.ndarray:
    """Returns words drawn with their frequencies in a text: what knows no order.

    Args:
        tokens: int `[N]`.
        length: Of the result.
        seed: Of the draws.

    Raises:
        ValueError: If `length` is not positive or the text empty.
    """
    check_integer("unigram_text", "length", length, 1)
    text = checked_tokens("unigram_text", tokens, np.iinfo(np.int32).max)
    return np.random.default_rng(seed).choice(text, length).astype(np.int32)

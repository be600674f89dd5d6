"""The log-probability that a model gives to every token of a stream."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.evaluation.window_stream import stream_windows
from rlm_tf.restricted import RestrictedModel


def log_softmax_at(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns `log softmax(logits)[targets]`, at least in float32.

    Args:
        logits: `[..., V]`.
        targets: Ids `[...]`.
    """
    if logits.dtype != tf.float64:
        logits = tf.cast(logits, tf.float32)
    # The sparse cross-entropy kernel also computes its gradient: three times the cost.
    chosen = tf.gather(logits, targets, batch_dims=targets.shape.rank)
    return chosen - tf.reduce_logsumexp(logits, axis=-1)


def target_log_probs(
    model: keras.Model,
    tokens: np.ndarray,
    batch_size: int,
    window: int,
    *,
    prefix: int,
    progress: str | None = None,
) -> np.ndarray:
    """Returns the log-probability of every token given the ones before it.

    Every token is predicted exactly once. With `batch_size` 1 each sees all of the
    stream before it, and `window` does not matter; with B rows, the first tokens of
    B - 1 rows are predicted from `prefix` or the last token alone.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens to logits; the last sees its own window only.
        tokens: Integers `[N]`.
        batch_size: Rows read in parallel.
        window: Tokens of a row read at once.
        prefix: The token before the first, `<eos>` as a rule.
        progress: Label of a progress bar, or None for no bar.

    Returns:
        Natural logarithms, float32 `[N]`, in the order of the stream.

    Raises:
        ValueError: If `tokens` is empty or not a vector of integers, or a size is not
            positive.
    """
    result = np.empty(len(tokens), np.float32)
    for output in stream_windows(
        model,
        tokens,
        batch_size,
        window,
        prefix=prefix,
        head=log_softmax_at,
        progress=progress,
    ):
        result[output.positions[output.valid]] = output.outputs[output.valid]
    return result


def restricted_target_log_probs(
    restricted_model: RestrictedModel, tokens: np.ndarray, *, prefix: int
) -> np.ndarray:
    """Returns a restricted model's log-probability of every token.

    The short contexts of the first tokens are filled up with `prefix`.

    Args:
        restricted_model: The restricted model.
        tokens: Integers `[N]`.
        prefix: The token before the first, `<eos>` as a rule.

    Returns:
        Natural logarithms, float64 `[N]`; minus infinity where the probability is 0.
    """
    before = np.full(restricted_model.context_length, prefix, np.int64)
    return restricted_model.score(np.concatenate([before, np.asarray(tokens)]))

"""The log-probability that a model gives to every token of a stream."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.evaluation.dynamic import DynamicEvaluation
from rlm_tf.evaluation.monte_carlo import MonteCarloDropout
from rlm_tf.evaluation.window_stream import WindowReader
from rlm_tf.models.language.interface import language_model_of
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
    temperature: float = 1.0,
    dynamic: DynamicEvaluation | None = None,
    monte_carlo: MonteCarloDropout | None = None,
    progress: str | None = None,
) -> np.ndarray:
    """Returns the log-probability of every token given the ones before it.

    Every token is predicted exactly once. With `batch_size` 1 each sees all of the
    stream before it, and `window` does not matter; with B rows, the first tokens of
    B - 1 rows are predicted from `prefix` or the last token alone.

    The three ways of evaluating combine: with Monte Carlo dropout, every sample passes
    over the whole stream with states of its own (and, if dynamic, adapts weights of its
    own, from the trained ones), and the probabilities of a token are averaged. Weights,
    rates and seeds of the model are what they were in the end, also after an error.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens to logits; the last sees its own window only.
        tokens: Integers `[N]`.
        batch_size: Rows read in parallel.
        window: Tokens of a row read at once.
        prefix: The token before the first, `<eos>` as a rule.
        temperature: T of `p_i^{1/T} / sum_j p_j^{1/T}`.
        dynamic: How weights are adapted to the windows that were scored, after each, by
            the gradient of their loss at this temperature; None: not.
        monte_carlo: How dropout acts; None: not.
        progress: Label of a progress bar, or None for no bar.

    Returns:
        Natural logarithms, float32 `[N]`, in the order of the stream.

    Raises:
        ValueError: If `tokens` is empty or not a vector of integers, or a size or the
            temperature is not positive.
    """
    with scorer(
        model,
        batch_size,
        window,
        prefix=prefix,
        dynamic=dynamic,
        monte_carlo=monte_carlo,
        progress=progress,
    ) as score:
        return score(tokens, temperature)


@contextlib.contextmanager
def scorer(
    model: keras.Model,
    batch_size: int,
    window: int,
    *,
    prefix: int,
    dynamic: DynamicEvaluation | None = None,
    monte_carlo: MonteCarloDropout | None = None,
    progress: str | None = None,
) -> Iterator[Callable[[np.ndarray, float], np.ndarray]]:
    """Yields `target_log_probs` of tokens and a temperature, compiled once for many.

    Arguments and errors are those of `target_log_probs`.
    """
    model = language_model_of(model)
    with contextlib.ExitStack() as stack:
        seed_masks: Callable[[], None] | None = None
        if monte_carlo is not None:
            seed_masks = stack.enter_context(monte_carlo.of(model))
        moves = None if dynamic is None else stack.enter_context(dynamic.of(model))
        reader = WindowReader(
            model,
            batch_size,
            window,
            prefix=prefix,
            head=log_softmax_at,
            training=monte_carlo is not None,
            adapt=moves and moves.adapt,
        )

        def one_pass(
            tokens: np.ndarray, temperature: float, label: str | None
        ) -> np.ndarray:
            result = np.empty(len(tokens), np.float32)
            try:
                for output in reader.windows(
                    tokens, temperature=temperature, progress=label
                ):
                    found = output.outputs[output.valid]
                    result[output.positions[output.valid]] = found
            finally:
                if moves is not None:
                    moves.restore()
            return result

        def score(tokens: np.ndarray, temperature: float = 1.0) -> np.ndarray:
            if not 0 < temperature < np.inf:
                raise ValueError(
                    "target_log_probs: `temperature` must be positive and finite, "
                    f"found {temperature}."
                )
            if monte_carlo is None or seed_masks is None:
                return one_pass(tokens, temperature, progress)
            # Two temperatures differ by nothing but the temperature.
            seed_masks()
            total = None
            for sample in range(monte_carlo.samples):
                label = progress and f"{progress}, sample {sample + 1}"
                found = one_pass(tokens, temperature, label).astype(np.float64)
                total = found if total is None else np.logaddexp(total, found)
            return (total - np.log(monte_carlo.samples)).astype(np.float32)

        yield score


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

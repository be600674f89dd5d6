"""Log-probabilities of texts of unequal length, in bounded memory."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.evaluation.log_probs import log_softmax_at
from rlm_tf.generation.stepwise import (
    StepwiseModel,
    longest_window,
    recomputed_in,
)

# Positions whose features, and whose logits, are in memory at once, and the most logits
# of models that cannot do without whole rows of them: 256 MB.
_FEATURE_POSITIONS = 16384
_LOGIT_POSITIONS = 1024
_LOGITS = 2**26


def token_log_probs(
    model: StepwiseModel, tokens: tf.RaggedTensor, prefix: int, vocabulary_size: int
) -> tf.Tensor:
    """Returns the log-probability of every token given the ones before it.

    A loop over windows carries the states, and within a window a loop over blocks of
    positions applies the output layer: a text of 25,000 words never asks for 25,000 x V
    logits, nor does a large batch. Models that can (`target_log_probs`) pass a large
    vocabulary slice by slice. A model without states, whose features are logits, is run
    on few texts at a time. No text's numbers depend on the others.

    Args:
        model: The model.
        tokens: int32 `[N, (T)]`.
        prefix: Token that stands before every text, `<eos>` as in training.
        vocabulary_size: V.

    Returns:
        Natural logarithms, float32 `[N, L]`, L the longest T; 0 beyond a text's end.
    """
    targets = tokens.to_tensor(prefix)
    lengths = tf.cast(tokens.row_lengths(), tf.int32)
    num_rows = tf.size(lengths)
    largest = longest_window(model)
    at_once = max(1, min(_LOGIT_POSITIONS, _LOGITS // vocabulary_size))
    if hasattr(model, "target_log_probs"):
        at_once = _LOGIT_POSITIONS
    recomputed = recomputed_in(model)
    if recomputed is None:
        window = _FEATURE_POSITIONS // tf.maximum(num_rows, 1)
        window = tf.clip_by_value(window, 1, largest)
        return _window_by_window(model, targets, lengths, prefix, window, at_once)
    # The window decides what a token sees: it may not depend on the number of texts.
    size = tf.maximum(at_once // recomputed.context_length, 1)
    blocks = tf.maximum(-(-num_rows // size), 1)

    def body(block: tf.Tensor, written: tf.TensorArray) -> tuple[Any, Any]:
        rows = slice(block * size, (block + 1) * size)
        log_probs = _window_by_window(
            model, targets[rows], lengths[rows], prefix, tf.constant(largest), at_once
        )
        return block + 1, written.write(block, log_probs)

    array = tf.TensorArray(
        tf.float32, blocks, infer_shape=False, element_shape=[None, None]
    )
    _, array = tf.while_loop(
        lambda block, *_: block < blocks, body, (0, array), parallel_iterations=1
    )
    return array.concat()


def _window_by_window(
    model: StepwiseModel,
    targets: tf.Tensor,
    lengths: tf.Tensor,
    prefix: int,
    window: tf.Tensor,
    at_once: int,
) -> tf.Tensor:
    """Returns log-probabilities `[N, L]` of texts `[N, L]` of some lengths `[N]`."""
    num_rows, longest = tf.size(lengths), tf.shape(targets)[1]
    window = tf.minimum(window, tf.maximum(longest, 1))
    steps = tf.maximum(-(-longest // window), 1)
    targets = tf.pad(targets, [[0, 0], [0, steps * window - longest]])
    inputs = tf.concat(
        [tf.fill([num_rows, 1], tf.constant(prefix, targets.dtype)), targets[:, :-1]],
        axis=1,
    )

    def body(
        step: tf.Tensor, states: Any, written: tf.TensorArray
    ) -> tuple[tf.Tensor, Any, tf.TensorArray]:
        first = step * window
        features, states = model.forward(inputs[:, first : first + window], states)
        scored = first + tf.range(window) < lengths[:, tf.newaxis]
        log_probs = _target_log_probs(
            model,
            tf.boolean_mask(features, scored),
            tf.boolean_mask(targets[:, first : first + window], scored),
            at_once,
        )
        log_probs = tf.scatter_nd(
            tf.where(scored), log_probs, tf.shape(scored, tf.int64)
        )
        return step + 1, states, written.write(step, log_probs)

    array = tf.TensorArray(tf.float32, steps, element_shape=[None, None])
    _, _, array = tf.while_loop(
        lambda step, *_: step < steps,
        body,
        (0, model.zero_states(num_rows), array),
        parallel_iterations=1,
    )
    windows = tf.transpose(array.stack(), [1, 0, 2])
    return tf.reshape(windows, [num_rows, steps * window])[:, :longest]


def _target_log_probs(
    model: StepwiseModel, features: tf.Tensor, targets: tf.Tensor, at_once: int
) -> tf.Tensor:
    """Maps features `[P, D]` and targets `[P]` to log-probabilities, float32 `[P]`."""
    positions = tf.size(targets)
    blocks = tf.maximum(-(-positions // at_once), 1)
    size = -(-positions // blocks)
    missing = blocks * size - positions
    features = tf.pad(features, [[0, missing], [0, 0]])
    targets = tf.pad(targets, [[0, missing]])
    features = tf.reshape(features, [blocks, size, features.shape[-1]])

    def of_block(block: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        rows, wanted = block[0][tf.newaxis], block[1][tf.newaxis]
        if hasattr(model, "target_log_probs"):
            log_probs = model.target_log_probs(rows, wanted)
        else:
            log_probs = log_softmax_at(model.output_logits(rows), wanted)
        return tf.cast(log_probs[0], tf.float32)

    log_probs = tf.map_fn(
        of_block,
        (features, tf.reshape(targets, [blocks, size])),
        fn_output_signature=tf.TensorSpec([None], tf.float32),
        parallel_iterations=1,
    )
    return tf.reshape(log_probs, [-1])[:positions]

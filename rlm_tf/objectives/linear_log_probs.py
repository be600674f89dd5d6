"""Log-probabilities of targets under a softmax whose logits are a linear map."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.objectives.linear_softmax import linear_operands, logits_of

# Words whose logits are in memory at once: 32 MB of 1,024 positions stay in caches.
_WORDS = 8192


def linear_log_probs(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
) -> tf.Tensor:
    """Log-probability of targets under `softmax(features kernel^T + bias)`.

        z_n = x_n K^T + b;    result_n = z_{n, y_n} - log sum_v exp z_nv

    The value of `-linear_cross_entropy`, for models that are done with training: the
    vocabulary is passed slice by slice with a running maximum and a running sum, so
    that memory does not grow with V, and the slices stay in the processor's caches. No
    gradient.

    Args:
        features: x, `[N, D]`, floating point. In half precision the products are in
            half precision, and everything else is in single precision.
        kernel: K, `[V, D]`, dtype of `features`.
        bias: b, `[V]`, or None.
        targets: y, int `[N]`, in [0, V).

    Returns:
        `[N]`, nats, at most 0, float32 (float64 for float64 features).

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If `features` or `kernel` is not floating point.
    """
    name = "linear_log_probs"
    operands = linear_operands(name, features, kernel, bias)
    check_shapes(name, targets=(targets, "N"), **operands)
    # Not read in the loop: TensorFlow copies variables that are also looked up in.
    features, kernel, biases = (
        tf.stop_gradient(tf.convert_to_tensor(features)),
        tf.stop_gradient(tf.convert_to_tensor(kernel)),
        [] if bias is None else [tf.stop_gradient(tf.convert_to_tensor(bias))],
    )
    targets = tf.cast(targets, tf.int32)
    size = tf.shape(kernel)[0]
    slices = -(-size // _WORDS)
    width = -(-size // tf.maximum(slices, 1))
    rows = tf.shape(features)[0]
    dtype = tf.float64 if features.dtype == tf.float64 else tf.float32

    def add_slice(
        i: tf.Tensor, highest: tf.Tensor, total: tf.Tensor, chosen: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        words = slice(i * width, (i + 1) * width)
        logits = logits_of(features, kernel[words], [b[words] for b in biases])
        peak = tf.maximum(highest, tf.reduce_max(logits, axis=1))
        new = tf.reduce_sum(tf.exp(logits - peak[:, tf.newaxis]), axis=1)
        total = total * tf.exp(highest - peak) + new
        # Not a product of its own, which half precision would round otherwise.
        place = targets - i * width
        found = tf.shape(logits)[1]
        found_at = tf.gather(
            logits, tf.clip_by_value(place, 0, found - 1), batch_dims=1
        )
        here = (place >= 0) & (place < found)
        return i + 1, peak, total, tf.where(here, found_at, chosen)

    nothing = tf.zeros([rows], dtype)
    _, highest, total, chosen = tf.while_loop(
        lambda i, *_: i < slices,
        add_slice,
        # Finite: minus infinity less itself is no number.
        (tf.constant(0), nothing + dtype.min, nothing, nothing),
        shape_invariants=(
            tf.TensorShape([]),
            *[tf.TensorShape([None])] * 3,
        ),
        parallel_iterations=1,
    )
    return chosen - highest - tf.math.log(total)

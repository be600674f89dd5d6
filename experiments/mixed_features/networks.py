"""Many small networks at once: patch by patch, with the modified softmax."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import keras
import tensorflow as tf

from experiments.mixed_features.instances import TRANSFORMATIONS, signs


class PatchNetworks(tf.Module):
    """S networks of one shape, which see one patch at a time.

    A prediction is the normalised geometric mean of what is said of the patches, the
    thesis' modified softmax: its cross-entropy is the mean over patches.

    Args:
        number: S.
        widths: Of the patch, the hidden layers and the classes.
        seed: Of the weights.
    """

    def __init__(self, number: int, widths: Sequence[int], seed: int) -> None:
        super().__init__()
        self.kernels, self.biases = [], []
        for layer, (wide, out) in enumerate(itertools.pairwise(widths)):
            start = keras.initializers.RandomNormal(
                stddev=(2 / wide) ** 0.5, seed=100 * seed + layer
            )
            self.kernels.append(tf.Variable(start([number, wide, out])))
            self.biases.append(tf.Variable(tf.zeros([number, 1, out])))

    def features(self, x: tf.Tensor) -> tf.Tensor:
        """Returns what the last hidden layer gives of patches, `[S, P, H]`."""
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1], strict=True):
            x = tf.nn.relu(tf.matmul(x, kernel) + bias)
        return x

    def patch_log_probs(self, x: tf.Tensor) -> tf.Tensor:
        """Returns `[S, N, M, K]` of `[S, N, M, b]`."""
        flat = tf.reshape(x, [tf.shape(x)[0], -1, x.shape[-1]])
        logits = tf.matmul(self.features(flat), self.kernels[-1]) + self.biases[-1]
        shape = tf.concat([tf.shape(x)[:3], tf.shape(logits)[-1:]], axis=0)
        return tf.nn.log_softmax(tf.reshape(logits, shape))

    def log_probs(self, x: tf.Tensor) -> tf.Tensor:
        """Returns normalised predictions `[S, N, K]`."""
        return tf.nn.log_softmax(tf.reduce_mean(self.patch_log_probs(x), axis=2))

    def lipschitz(self) -> tf.Tensor:
        """Returns the sums of the layers' constants in the 1-norm, `[S]`."""
        sums = [tf.reduce_sum(tf.abs(kernel), axis=2) for kernel in self.kernels]
        return tf.add_n([tf.reduce_max(each, axis=1) for each in sums])


def transformed(x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Returns patches `[S, N, M, b]`, each transformed in a way that is drawn."""
    drawn = tf.random.stateless_uniform(
        tf.shape(x)[:3], seed, maxval=len(TRANSFORMATIONS), dtype=tf.int32
    )[..., tf.newaxis]
    found = tf.where(drawn == 1, form(x, "flip"), x)
    return tf.where(drawn == 2, form(x, "shift"), found)


def form(x: tf.Tensor, name: str) -> tf.Tensor:
    """Returns patches, all transformed in one way."""
    if name == "flip":
        return x * tf.constant(signs(x.shape[-1]))
    return tf.roll(x, 1, axis=-1) if name == "shift" else x

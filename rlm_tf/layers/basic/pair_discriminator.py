"""A critic of pairs: do two pieces of text belong together?"""

from __future__ import annotations

import math
from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_shapes
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.seeds import Seeds
from rlm_tf.typing import TensorLike

Order = Literal["paper", "authors"]
ORDERS: tuple[Order, ...] = ("paper", "authors")
# Parts of the features of a pair, each as wide as one of them.
_PARTS = 5


def pair_features(x: TensorLike, y: TensorLike, *, order: Order = "paper") -> tf.Tensor:
    """Returns [x, y, x - y, |x - y|, x y] of each pair (Cao and Xu 2019).

    Args:
        x: `[..., F]`.
        y: `[..., F]`, of the same dtype; leading axes may broadcast.
        order: `"authors"` has the last two parts the other way round.

    Returns:
        `[..., 5 F]`.

    Raises:
        ValueError: If widths differ or the order is unknown.
    """
    check_option("pair_features", "order", order, ORDERS)
    x = tf.convert_to_tensor(x)
    y = tf.convert_to_tensor(y, x.dtype)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"pair_features: `x` and `y` must have equally many features, found "
            f"{x.shape[-1]} and {y.shape[-1]}."
        )
    difference = x - y
    shape = tf.shape(difference)
    last = [tf.abs(difference), x * y]
    if order == "authors":
        last.reverse()
    whole = [tf.broadcast_to(x, shape), tf.broadcast_to(y, shape), difference, *last]
    return tf.concat(whole, axis=-1)


@keras.saving.register_keras_serializable("rlm_tf")
class PairDiscriminator(keras.layers.Layer):
    """Scores pairs (x, y): one hidden layer of rectified units over `pair_features`.

        D(x, y) = v . relu(W [x, y, x - y, |x - y|, x y] + a) + b

    Scores are not squashed: trained by `jsd_proxy` they tend to the pointwise mutual
    information. It is called as `discriminator((x, y))`. Kernels start as Glorot's
    normal distribution, biases uniform in +-1/sqrt(fan in), as in the authors' code.

    Args:
        units: Hidden units of each direction.
        directions: 2: the mean of two networks, one on (x, y) and one on (y, x).
        order: Of the features, see `pair_features`.
        feature_dropout: Rate on the features of pairs.
        hidden_dropout: Rate on hidden units.
        seed: Of initialisation and dropout.
        **kwargs: Of `keras.layers.Layer`.

    Attributes:
        width: F, features of each of a pair, once it is built.

    Raises:
        ValueError: If a number is not positive, `directions` neither 1 nor 2, a rate
            not in [0, 1), or the order unknown.
    """

    def __init__(
        self,
        units: int = 500,
        *,
        directions: int = 1,
        order: Order = "paper",
        feature_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "units", units, 1)
        if directions not in (1, 2):
            raise ValueError(
                f"{name}: `directions` must be 1 or 2, found {directions}."
            )
        check_option(name, "order", order, ORDERS)
        for rate, value in (
            ("feature_dropout", feature_dropout),
            ("hidden_dropout", hidden_dropout),
        ):
            if not 0 <= value < 1:
                raise ValueError(f"{name}: `{rate}` must lie in [0, 1), found {value}.")
        self.units = units
        self.directions = directions
        self.order = order
        self.feature_dropout = feature_dropout
        self.hidden_dropout = hidden_dropout
        self.seed = seed
        seeds = Seeds(seed, self)
        self._drop_features, self._drop_hidden = (
            ReplicaDropout(rate, seed=seeds.next(), dtype=self.dtype_policy)
            for rate in (feature_dropout, hidden_dropout)
        )

    def build(self, input_shape: Any) -> None:
        width = int(input_shape[0][-1])
        self.width = width
        seeds = Seeds(self.seed, self)
        self._kernels = []
        for number in range(self.directions):
            weights = []
            for name, fan_in, shape in (
                ("kernel", _PARTS * width, (_PARTS * width, self.units)),
                ("bias", _PARTS * width, (self.units,)),
                ("score_kernel", self.units, (self.units, 1)),
                ("score_bias", self.units, (1,)),
            ):
                scale = 1 / math.sqrt(fan_in)
                initializer = keras.initializers.RandomUniform(-scale, scale)
                if len(shape) == 2:
                    initializer = keras.initializers.GlorotNormal()
                weights.append(
                    self.add_weight(
                        name=f"{name}_{number}",
                        shape=shape,
                        initializer=seeds.initializer(initializer),
                    )
                )
            self._kernels.append(weights)
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Maps (x `[B, F]`, y `[B, F]`) to scores `[B]`."""
        x, y = inputs
        check_shapes(type(self).__name__, x=(x, "B F"), y=(y, "B F"))
        scores = []
        for number, weights in enumerate(self._kernels):
            pair = (y, x) if number else (x, y)
            features = pair_features(*pair, order=self.order)
            features = self._drop_features(features, training=training)
            kernel, bias, score_kernel, score_bias = map(tf.convert_to_tensor, weights)
            hidden = tf.nn.relu(tf.matmul(features, kernel) + bias)
            hidden = self._drop_hidden(hidden, training=training)
            scores.append((tf.matmul(hidden, score_kernel) + score_bias)[:, 0])
        return tf.add_n(scores) / len(scores)

    def all_pairs(self, x: TensorLike, y: TensorLike) -> tf.Tensor:
        """Returns the scores of every x with every y, without dropout.

        Features of pairs exist for one x at a time, in the backward pass, too.

        Args:
            x: `[N, F]`.
            y: `[M, F]`.

        Returns:
            `[N, M]`, entry [i, j] = D(x_i, y_j).
        """
        x, y = (tf.cast(values, self.compute_dtype) for values in (x, y))
        check_shapes(type(self).__name__, x=(x, "N F"), y=(y, "M F"))
        if not self.built:
            self.build((tuple(x.shape), tuple(y.shape)))
        weights = [
            tf.cast(w, self.compute_dtype) for part in self._kernels for w in part
        ]

        @tf.recompute_grad
        def row(x_i: tf.Tensor, y: tf.Tensor, *weights: tf.Tensor) -> tf.Tensor:
            scores = []
            for number in range(self.directions):
                pair = (y, x_i[tf.newaxis]) if number else (x_i[tf.newaxis], y)
                features = pair_features(*pair, order=self.order)
                kernel, bias, score_kernel, score_bias = weights[
                    4 * number : 4 * number + 4
                ]
                hidden = tf.nn.relu(tf.matmul(features, kernel) + bias)
                scores.append((tf.matmul(hidden, score_kernel) + score_bias)[:, 0])
            return tf.add_n(scores) / len(scores)

        return tf.map_fn(
            lambda x_i: row(x_i, y, *weights),
            x,
            fn_output_signature=tf.TensorSpec([y.shape[0]], x.dtype),
        )

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "directions": self.directions,
            "order": self.order,
            "feature_dropout": self.feature_dropout,
            "hidden_dropout": self.hidden_dropout,
            "seed": self.seed,
        }

"""One block of a transformer: attention and a feed-forward network."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.transformer.rotary import rotate
from rlm_tf.seeds import Seeds

POSITIONS = ("rotary", "learnt")


class Cache(NamedTuple):
    """Keys and values of the last tokens of each row, before any position is applied.

    Attributes:
        keys: `[B, C, D]`, the newest last.
        values: `[B, C, D]`.
        present: `[B, C]`, 1 where there is a token, else 0.
    """

    keys: tf.Tensor
    values: tf.Tensor
    present: tf.Tensor


@keras.saving.register_keras_serializable("rlm_tf")
class TransformerBlock(keras.layers.Layer):
    """`x + attention(norm(x))`, then `x + feed_forward(norm(x))`.

    Normalisation comes first (Xiong et al. 2020, arXiv 2002.04745), the network between
    has GELU. A causal block sees a token and the `context_length` before it, wherever
    its input was cut: those that came before are in its cache. Positions are relative,
    so that a cache may slide: turned queries and keys ("rotary"), or a bias for each
    head and distance, learnt ("learnt", as in Raffel et al. 2020, without their bins).

    Args:
        width: D.
        num_heads: H, which divides D; D / H is even with rotary positions.
        context_length: C, tokens before a token that it sees; of blocks that are not
            causal, the largest distance that positions tell apart.
        hidden_width: Of the feed-forward network; None: 4 D.
        causal: Whether a token sees those behind it; else all of its row.
        positions: "rotary" or "learnt".
        dropout: Rate on what attention and network give.
        initializer_scale: Multiplies the initial standard deviation of the maps that
            are added to x.
        seed: Of initialisation and dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If a size or rate is out of range or does not fit.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        context_length: int,
        *,
        hidden_width: int | None = None,
        causal: bool = True,
        positions: str = "rotary",
        dropout: float = 0.0,
        initializer_scale: float = 1.0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.num_heads = num_heads
        self.context_length = context_length
        self.hidden_width = hidden_width
        self.causal = causal
        self.positions = positions
        self.dropout = dropout
        self.initializer_scale = initializer_scale
        self.seed = seed
        self._check_arguments()
        self._create_layers(Seeds(seed))

    def _check_arguments(self) -> None:
        name = type(self).__name__
        for argument in ("width", "num_heads", "context_length"):
            check_integer(name, argument, getattr(self, argument), 1)
        if self.hidden_width is not None:
            check_integer(name, "hidden_width", self.hidden_width, 1)
        if self.positions not in POSITIONS:
            raise ValueError(
                f"{name}: `positions` must be one of {', '.join(POSITIONS)}; found "
                f"{self.positions!r}."
            )
        if self.width % self.num_heads:
            raise ValueError(
                f"{name}: `width` must be a multiple of `num_heads`, found "
                f"{self.width} and {self.num_heads}."
            )
        if self.positions == "rotary" and self.width // self.num_heads % 2:
            raise ValueError(
                f"{name}: rotary positions need heads of an even width, found "
                f"{self.width} / {self.num_heads}."
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"{name}: `dropout` must lie in [0, 1), found {self.dropout}."
            )
        check_range(name, 0.0, 1e6, initializer_scale=self.initializer_scale)

    def _create_layers(self, seeds: Seeds) -> None:
        def dense(units: int, name: str, scale: float = 1.0) -> keras.layers.Dense:
            initializer = keras.initializers.VarianceScaling(
                scale**2 or 1e-12, "fan_in", "truncated_normal", seeds.next()
            )
            return keras.layers.Dense(
                units,
                kernel_initializer=initializer,
                dtype=self.dtype_policy,
                name=name,
            )

        def norm(name: str) -> keras.layers.LayerNormalization:
            return keras.layers.LayerNormalization(
                epsilon=1e-5, dtype=self.dtype_policy, name=name
            )

        def lose(name: str) -> ReplicaDropout:
            return ReplicaDropout(
                self.dropout, seed=seeds.next(), dtype=self.dtype_policy, name=name
            )

        hidden = self.hidden_width or 4 * self.width
        self.attention_norm = norm("attention_norm")
        self.query_key_value = dense(3 * self.width, "query_key_value")
        self.attention_output = dense(
            self.width, "attention_output", self.initializer_scale
        )
        self.attention_dropout = lose("attention_dropout")
        self.network_norm = norm("network_norm")
        self.network_hidden = dense(hidden, "network_hidden")
        self.network_output = dense(
            self.width, "network_output", self.initializer_scale
        )
        self.network_dropout = lose("network_dropout")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        shape = (None, None, self.width)
        for layer in (
            self.attention_norm,
            self.query_key_value,
            self.attention_output,
            self.network_norm,
            self.network_hidden,
        ):
            layer.build(shape)
        self.network_output.build((None, None, self.network_hidden.units))
        if self.positions == "learnt":
            # Of other blocks a distance may be negative.
            ways = 1 if self.causal else 2
            self.distance_bias = self.add_weight(
                name="distance_bias",
                shape=(self.num_heads, ways * self.context_length + 1),
                initializer="zeros",
            )
        self.built = True

    # === Computation ===

    def empty_cache(self, batch_size: int | tf.Tensor) -> Cache:
        """Returns the cache before the first token."""
        shape = [batch_size, self.context_length, self.width]
        keys = tf.zeros(shape, self.compute_dtype)
        return Cache(keys, keys, keys[..., 0])

    def call(
        self,
        inputs: tf.Tensor,
        cache: Cache | None = None,
        visible: tf.Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """Runs the block.

        Args:
            inputs: `[B, T, D]`.
            cache: Of the tokens before; None: there are none. Of causal blocks only.
            visible: bool `[B, T]`, tokens that may be seen; None: all.
            training: Whether dropout acts.

        Returns:
            `[B, T, D]`; with a cache, that and the new cache.

        Raises:
            ValueError: If a block that is not causal is given a cache.
        """
        if cache is not None and not self.causal:
            raise ValueError(
                f"{type(self).__name__}: a block that is not causal has no cache."
            )
        query, key, value = tf.split(
            self.query_key_value(self.attention_norm(inputs)), 3, axis=-1
        )
        new_cache = None
        seen = visible
        if cache is not None:
            key = tf.concat([tf.cast(cache.keys, key.dtype), key], axis=1)
            value = tf.concat([tf.cast(cache.values, value.dtype), value], axis=1)
            if visible is None:
                visible = tf.ones(tf.shape(inputs)[:2], tf.bool)
            seen = tf.concat([cache.present > 0, visible], axis=1)
            new_cache = self._newest(key, value, seen)
        mixed = self._attention(query, key, value, seen)
        mixed = self.attention_output(mixed)
        hidden = inputs + self.attention_dropout(mixed, training=training)
        inner = keras.activations.gelu(
            self.network_hidden(self.network_norm(hidden)), approximate=False
        )
        added = self.network_output(inner)
        outputs = hidden + self.network_dropout(added, training=training)
        return outputs if new_cache is None else (outputs, new_cache)

    def _newest(self, key: tf.Tensor, value: tf.Tensor, present: tf.Tensor) -> Cache:
        """Returns the cache of the last C of at least C tokens."""
        first = tf.shape(key)[1] - self.context_length
        shape = [None, self.context_length, self.width]
        return Cache(
            tf.ensure_shape(key[:, first:], shape),
            tf.ensure_shape(value[:, first:], shape),
            tf.ensure_shape(tf.cast(present[:, first:], key.dtype), shape[:2]),
        )

    def _attention(
        self, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, seen: tf.Tensor | None
    ) -> tf.Tensor:
        """Returns `[B, T, D]`; the last T of the S keys are those of the queries."""
        steps, length = tf.shape(query)[1], tf.shape(key)[1]
        query_places = tf.range(length - steps, length)
        distance = query_places[:, tf.newaxis] - tf.range(length)
        parts = [self._heads(part) for part in (query, key, value)]
        if self.positions == "rotary":
            parts[0] = rotate(parts[0], query_places)
            parts[1] = rotate(parts[1], tf.range(length))
        allowed = tf.ones_like(distance, tf.bool)
        if self.causal:
            allowed = (distance >= 0) & (distance <= self.context_length)
        allowed = allowed[tf.newaxis, tf.newaxis]
        if seen is not None:
            allowed = allowed & seen[:, tf.newaxis, tf.newaxis]
        mixed = keras.ops.dot_product_attention(
            *parts, bias=self._bias(distance), mask=allowed
        )
        return tf.reshape(mixed, tf.shape(query))

    def _heads(self, part: tf.Tensor) -> tf.Tensor:
        size = self.width // self.num_heads
        shape = tf.concat([tf.shape(part)[:2], [self.num_heads, size]], axis=0)
        return tf.ensure_shape(
            tf.reshape(part, shape), [None, None, self.num_heads, size]
        )

    def _bias(self, distance: tf.Tensor) -> tf.Tensor | None:
        if self.positions != "learnt":
            return None
        least = 0 if self.causal else -self.context_length
        place = tf.clip_by_value(distance, least, self.context_length) - least
        table = tf.cast(tf.convert_to_tensor(self.distance_bias), self.compute_dtype)
        return tf.gather(table, place, axis=1)[tf.newaxis]

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "width": self.width,
            "num_heads": self.num_heads,
            "context_length": self.context_length,
            "hidden_width": self.hidden_width,
            "causal": self.causal,
            "positions": self.positions,
            "dropout": self.dropout,
            "initializer_scale": self.initializer_scale,
            "seed": self.seed,
        }

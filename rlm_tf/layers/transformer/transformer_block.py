"""One block of a transformer: attention and a feed-forward network."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_range
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.transformer.attention import attend
from rlm_tf.layers.transformer.cache import Cache
from rlm_tf.layers.transformer.rotary import rotate
from rlm_tf.seeds import Seeds, reseeded

POSITIONS = ("rotary", "learnt", "none")
NORMS = ("pre", "post")
# Whether GELU is the tanh formula of BERT's first code.
ACTIVATIONS = {"gelu": False, "gelu_tanh": True}


@keras.saving.register_keras_serializable("rlm_tf")
class TransformerBlock(keras.layers.Layer):
    """`x + attention(norm(x))`, then `x + feed_forward(norm(x))`.

    Normalisation comes first (Xiong et al. 2020, arXiv 2002.04745) or last, as in BERT:
    `norm(omega x + attention(x))`, then the same with the feed-forward network; with
    `residual_scale` each feature has an omega of its own that is learnt (Admin; Liu et
    al. 2020, arXiv 2004.08249). The network between has GELU. A causal block sees a
    token and the `context_length` before it, wherever its input was cut: those that
    came before are in its cache. Positions are relative, so that a cache may slide:
    turned queries and keys ("rotary"), or a bias for each head and distance, learnt
    ("learnt", as in Raffel et al. 2020, without their bins).
    With "none" whoever calls it has to say where tokens are.

    Args:
        width: D.
        num_heads: H, which divides D; D / H is even with rotary positions.
        context_length: C, tokens before a token that it sees; of blocks that are not
            causal, the largest distance that positions tell apart.
        hidden_width: Of the feed-forward network; None: 4 D.
        causal: Whether a token sees those behind it; else all of its row.
        positions: "rotary", "learnt" or "none".
        dropout: Rate on what attention and network give.
        attention_weights_dropout: Rate on the weights of attention.
        norm: "pre" or "post".
        residual_scale: What omega begins with; None: there is none. Of "post" alone.
        activation: "gelu", or "gelu_tanh" for its approximation.
        epsilon: Of the normalisations.
        kernel_initializer: Of all maps; None: by their number of inputs.
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
        attention_weights_dropout: float = 0.0,
        norm: str = "pre",
        residual_scale: float | None = None,
        activation: str = "gelu",
        epsilon: float = 1e-5,
        kernel_initializer: Any = None,
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
        self.attention_weights_dropout = attention_weights_dropout
        self.norm = norm
        self.residual_scale = residual_scale
        self.activation = activation
        self.epsilon = epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
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
        check_option(name, "positions", self.positions, POSITIONS)
        check_option(name, "norm", self.norm, NORMS)
        check_option(name, "activation", self.activation, ACTIVATIONS)
        if self.residual_scale is not None:
            check_range(name, 0.0, 1e6, residual_scale=self.residual_scale)
            if self.norm != "post":
                raise ValueError(
                    f'{name}: `residual_scale` needs `norm="post"`: with another one '
                    "sums are not normalised."
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
        for argument in ("dropout", "attention_weights_dropout"):
            if not 0 <= getattr(self, argument) < 1:
                raise ValueError(
                    f"{name}: `{argument}` must lie in [0, 1), found "
                    f"{getattr(self, argument)}."
                )
        check_range(
            name,
            0.0,
            1e6,
            initializer_scale=self.initializer_scale,
            epsilon=self.epsilon,
        )

    def _create_layers(self, seeds: Seeds) -> None:
        def dense(units: int, name: str, scale: float = 1.0) -> keras.layers.Dense:
            seed = seeds.next()
            initializer = keras.initializers.VarianceScaling(
                scale**2 or 1e-12, "fan_in", "truncated_normal", seed
            )
            if self.kernel_initializer is not None:
                initializer = reseeded(self.kernel_initializer, seed)
            return keras.layers.Dense(
                units,
                kernel_initializer=initializer,
                dtype=self.dtype_policy,
                name=name,
            )

        def norm(name: str) -> keras.layers.LayerNormalization:
            return keras.layers.LayerNormalization(
                epsilon=self.epsilon, dtype=self.dtype_policy, name=name
            )

        def lose(name: str, rate: float) -> ReplicaDropout:
            return ReplicaDropout(
                rate, seed=seeds.next(), dtype=self.dtype_policy, name=name
            )

        hidden = self.hidden_width or 4 * self.width
        self.attention_norm = norm("attention_norm")
        self.query_key_value = dense(3 * self.width, "query_key_value")
        self.attention_output = dense(
            self.width, "attention_output", self.initializer_scale
        )
        self.attention_dropout = lose("attention_dropout", self.dropout)
        self.network_norm = norm("network_norm")
        self.network_hidden = dense(hidden, "network_hidden")
        self.network_output = dense(
            self.width, "network_output", self.initializer_scale
        )
        self.network_dropout = lose("network_dropout", self.dropout)
        self.weights_dropout = lose("weights_dropout", self.attention_weights_dropout)

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
        if self.residual_scale is not None:
            self.attention_residual, self.network_residual = (
                self.add_weight(
                    name=name,
                    shape=(self.width,),
                    initializer=keras.initializers.Constant(self.residual_scale),
                )
                for name in ("attention_residual", "network_residual")
            )
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
        bias: tf.Tensor | None = None,
        places: tf.Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """Runs the block.

        Args:
            inputs: `[B, T, D]`.
            cache: Of the tokens before; None: there are none. Of causal blocks only.
            visible: bool `[B, T]`, tokens that may be seen; or `[B, T, S]`, those that
                each token may see, without a cache; None: all.
            bias: Added to the scores of attention, broadcasts to `[B, H, T, S]`; None:
                none.
            places: int `[T]`, where tokens are, without a cache; None: one behind
                another.
            training: Whether dropout acts.

        Returns:
            `[B, T, D]`; with a cache, that and the new cache.

        Raises:
            ValueError: If a block that is not causal is given a cache.
        """
        mixed, new_cache = self.attention(
            inputs, cache, visible, bias, places, training
        )
        hidden = self.after_attention(inputs, mixed)
        outputs = self.after_network(hidden, self.network(hidden, training))
        return outputs if new_cache is None else (outputs, new_cache)

    def attention(
        self,
        inputs: tf.Tensor,
        cache: Cache | None = None,
        visible: tf.Tensor | None = None,
        bias: tf.Tensor | None = None,
        places: tf.Tensor | None = None,
        training: bool = False,
    ) -> tuple[tf.Tensor, Cache | None]:
        """Returns what attention adds, `[B, T, D]`, and the new cache; see `call`."""
        if cache is not None and not self.causal:
            raise ValueError(
                f"{type(self).__name__}: a block that is not causal has no cache."
            )
        normed = self.attention_norm(inputs) if self.norm == "pre" else inputs
        query, key, value = tf.split(self.query_key_value(normed), 3, axis=-1)
        new_cache = None
        seen = visible
        if cache is not None:
            key = tf.concat([tf.cast(cache.keys, key.dtype), key], axis=1)
            value = tf.concat([tf.cast(cache.values, value.dtype), value], axis=1)
            if visible is None:
                visible = tf.ones(tf.shape(inputs)[:2], tf.bool)
            seen = tf.concat([cache.present > 0, visible], axis=1)
            new_cache = self._newest(key, value, seen)
        mixed = self._attention(query, key, value, seen, bias, places, training)
        mixed = self.attention_output(mixed)
        return self.attention_dropout(mixed, training=training), new_cache

    def network(self, hidden: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns what the feed-forward network adds, `[B, T, D]`."""
        normed = self.network_norm(hidden) if self.norm == "pre" else hidden
        inner = keras.activations.gelu(
            self.network_hidden(normed), approximate=ACTIVATIONS[self.activation]
        )
        return self.network_dropout(self.network_output(inner), training=training)

    def after_attention(self, inputs: tf.Tensor, mixed: tf.Tensor) -> tf.Tensor:
        """Returns the first sum, normalised if normalisation comes last."""
        if self.norm == "pre":
            return inputs + mixed
        if self.residual_scale is not None:
            inputs = inputs * tf.cast(self.attention_residual, inputs.dtype)
        return self.attention_norm(inputs + mixed)

    def after_network(self, hidden: tf.Tensor, added: tf.Tensor) -> tf.Tensor:
        """Returns the second sum, likewise."""
        if self.norm == "pre":
            return hidden + added
        if self.residual_scale is not None:
            hidden = hidden * tf.cast(self.network_residual, hidden.dtype)
        return self.network_norm(hidden + added)

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
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        seen: tf.Tensor | None,
        bias: tf.Tensor | None,
        places: tf.Tensor | None,
        training: bool,
    ) -> tf.Tensor:
        """Returns `[B, T, D]`; the last T of the S keys are those of the queries."""
        steps, length = tf.shape(query)[1], tf.shape(key)[1]
        key_places = tf.range(length) if places is None else places
        query_places = key_places[length - steps :]
        distance = query_places[:, tf.newaxis] - key_places
        shape = tf.shape(query)
        query, key, value = (self._heads(part) for part in (query, key, value))
        if self.positions == "rotary":
            query = rotate(query, query_places)
            key = rotate(key, key_places)
        allowed = tf.ones_like(distance, tf.bool)
        if self.causal:
            allowed = (distance >= 0) & (distance <= self.context_length)
        allowed = allowed[tf.newaxis, tf.newaxis]
        if seen is not None:
            rows = seen[:, tf.newaxis] if seen.shape.rank == 2 else seen
            allowed = allowed & rows[:, tf.newaxis]
        own = self._bias(distance)
        if own is not None:
            bias = own if bias is None else bias + own
        loses = training and self.attention_weights_dropout > 0
        lose = self.weights_dropout if loses else None
        mixed = attend(query, key, value, allowed, bias, lose)
        return tf.reshape(mixed, shape)

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
            "attention_weights_dropout": self.attention_weights_dropout,
            "norm": self.norm,
            "residual_scale": self.residual_scale,
            "activation": self.activation,
            "epsilon": self.epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer)
            if self.kernel_initializer is not None
            else None,
            "initializer_scale": self.initializer_scale,
            "seed": self.seed,
        }

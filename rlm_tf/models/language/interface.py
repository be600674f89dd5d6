"""What the rest of the library asks of a language model, whatever Keras model it is.

Contexts of induced model matching, evaluation, generation and serving run language
models through this interface alone; it is the one place that decides what a model is
and can.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.models.given_logits import token_logits
from rlm_tf.models.language.batch import tokens_of
from rlm_tf.models.recording import recording
from rlm_tf.numerics import at_least_single
from rlm_tf.objectives.cross_entropy_with_imm import (
    JointLosses,
    cross_entropy_with_imms,
)
from rlm_tf.objectives.in_batch import Groups
from rlm_tf.objectives.soft_targets import (
    Distributions,
    SoftTargetLoss,
    cross_entropy_with_soft_targets,
)

# Share of the largest logit that rounding may change.
_ROUNDED = {"float64": 1e-9, "float32": 1e-4, "float16": 0.02, "bfloat16": 0.1}
_STATES = ("zero_states", "forward", "output_logits")
_MEMORY = (*_STATES, "features", "starting_states", "nll", "joint_nll")


class LanguageModelInterface:
    """Runs any Keras model that maps tokens `[B, T]` to logits `[B, T, V]`.

    Such a model has neither states nor a memory from window to window, and ignores
    start flags. `outputs` and features are whatever the model's last expensive array
    is; the methods that map them to logits take them. Here they are the logits.

    A model says what it is by attributes: `vocabulary_size`, and `is_causal = False` if
    position t sees tokens behind it, as in masked language models.

    Args:
        model: The language model.
        hidden_layers: Names of the layers whose outputs are hidden features, of a
            functional Keras model.
    """

    has_states = False
    has_features = False

    def __init__(self, model: keras.Model, hidden_layers: Sequence[str] = ()):
        self.model = model
        self.hidden_layers = tuple(hidden_layers)
        self._probe_model: keras.Model | None = None

    @property
    def vocabulary_size(self) -> int | None:
        """V, where the model knows it."""
        return getattr(self.model, "vocabulary_size", None)

    @property
    def is_causal(self) -> bool:
        """Whether position t sees no token behind it."""
        return bool(getattr(self.model, "is_causal", True))

    def check_causal(self, caller: str) -> None:
        """Raises ValueError if the model sees the tokens that it is to predict."""
        if not self.is_causal:
            raise ValueError(
                f"{caller}: needs a causal language model, whose prediction at a "
                f"position sees no later token; {type(self.model).__name__} is masked "
                "(`is_causal` is False)."
            )

    def check_sees_no_later_token(self, caller: str) -> None:
        """Raises ValueError if a first prediction depends on the second token.

        For models that do not say whether they are causal. Rows of one product are
        rounded differently: what differs by that is no dependence.
        """
        pair = tf.constant([[0, 0], [0, 1]])
        logits = self.whole_logits(pair, False)[:, 0]
        precision = max(_ROUNDED[self.model.compute_dtype], _ROUNDED[logits.dtype.name])
        first, second = tf.unstack(at_least_single(logits))
        largest = tf.reduce_max(tf.abs(first - second))
        if bool(largest > precision * tf.reduce_max(tf.abs(first))):
            raise ValueError(
                f"{caller}: needs a causal language model; the predictions of "
                f"{self.model.name!r} change with tokens behind them."
            )

    # === Windows of training, which let a memory move on ===

    def whole_logits(self, x: Any, training: bool) -> tf.Tensor:
        """Returns the logits `[B, T, V]` of one window, and lets a memory move on."""
        return token_logits(self.model, tokens_of(x), training)

    def outputs(self, x: Any, training: bool) -> tf.Tensor:
        """Returns the outputs of one window, and lets a memory move on."""
        return token_logits(self.model, tokens_of(x), training)

    def recorded_outputs(self) -> AbstractContextManager[dict[str, Any]]:
        """Gives a record whose `outputs` are those of the last window that was run."""
        return recording({"outputs": self.model})

    def starting_states(self, x: Any) -> Any:
        """Returns the states from which training starts this window.

        Call it before `outputs`, which lets a memory move on.
        """
        return None

    def evaluation_outputs(self, x: Any, states: Any) -> tf.Tensor:
        """Returns the window's outputs in evaluation mode; no memory is written."""
        return token_logits(self.model, tokens_of(x), training=False)

    def last_logits(
        self, windows: tf.Tensor, last: tf.Tensor, states: Any = None
    ) -> tf.Tensor:
        """Returns logits after one position of each window, in evaluation mode.

        Args:
            windows: int `[W, L]`.
            last: int32 `[W]`, the position whose prediction is wanted.
            states: `[W, ...]`, where each window starts; None: zero states. Models
                without a memory ignore it.

        Returns:
            `[W, V]`.
        """
        logits = self.model(windows, training=False)
        return at_least_single(tf.gather(logits, last, batch_dims=1))

    def nll(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """Returns the negative log-likelihood `[B, T]` of targets in nats."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=targets, logits=at_least_single(outputs)
        )

    def logits(self, outputs: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Returns the logits `[M, V]` of flat positions `rows` `[M]`."""
        flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
        return at_least_single(tf.gather(flat, rows))

    def joint(
        self, outputs: tf.Tensor, targets: tf.Tensor, several: Sequence[Groups]
    ) -> JointLosses:
        """Returns negative log-likelihood `[B, T]` and induced losses `[G]` together.

        Args:
            outputs: Of the main pass.
            targets: int `[B, T]`.
            several: The groups of each restricted model.
        """
        return cross_entropy_with_imms(outputs, targets, several)

    def joint_soft(
        self, outputs: tf.Tensor, targets: tf.Tensor, probs: Distributions
    ) -> SoftTargetLoss:
        """Returns negative log-likelihood `[B, T]` and that of distributions `[N]`."""
        flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
        nll, soft = cross_entropy_with_soft_targets(
            flat, tf.reshape(targets, [-1]), probs
        )
        return SoftTargetLoss(tf.reshape(nll, tf.shape(targets)), soft)

    # === Explicit states; no memory is read or written ===

    def zero_states(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the states before the first token: a structure of `[B, ...]`."""
        return ()

    def forward(
        self, tokens: tf.Tensor, states: Any, training: bool = False
    ) -> tuple[tf.Tensor, Any]:
        """Runs int `[B, T]` from given states.

        Returns:
            Features `[B, T, F]`, and the new states. A model without states starts
            afresh with every call.
        """
        return token_logits(self.model, tokens, training), states

    def output_logits(
        self, features: tf.Tensor, temperature: float | tf.Tensor = 1.0
    ) -> tf.Tensor:
        """Maps features `[..., F]` to logits `[..., V]`.

        Args:
            features: Of `forward`.
            temperature: T of `p_i^{1/T} / sum_j p_j^{1/T}`.
        """
        if isinstance(temperature, float) and temperature == 1.0:
            return features
        return features / tf.cast(temperature, features.dtype)

    def hidden_features(
        self, tokens: tf.Tensor, states: Any = None, training: bool = False
    ) -> list[tf.Tensor]:
        """Returns the outputs `[B, T, F_l]` of every hidden layer, the lowest first.

        Args:
            tokens: int `[B, T]`.
            states: Where the windows start; None: zero states.
            training: Whether dropout acts.

        Raises:
            ValueError: If the model does not say what its hidden layers give.
        """
        if not hasattr(self.model, "hidden_features"):
            return self.read(tokens, training)[0]
        return self.model.hidden_features(tokens, states, training=training)

    def read(
        self, tokens: tf.Tensor, training: bool = False
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Runs pieces of text from zero states; no memory is read or written.

        Args:
            tokens: int `[B, T]`.
            training: Whether dropout acts.

        Returns:
            The outputs `[B, T, F_l]` of every hidden layer, and the model's outputs,
            which `nll` takes. A model with `hidden_features` runs twice for the two.

        Raises:
            ValueError: If the model does not say what its hidden layers give.
        """
        if hasattr(self.model, "hidden_features"):
            hidden = self.model.hidden_features(tokens, None, training=training)
            return list(hidden), token_logits(self.model, tokens, training)
        if self._probe_model is None:
            self._probe_model = self._make_probe()
        *hidden, outputs = self._probe_model(tokens, training=training)
        return hidden, outputs

    def _make_probe(self) -> keras.Model:
        """Returns a model of the same layers that gives hidden outputs, too."""
        name = type(self.model).__name__
        if not self.hidden_layers:
            raise ValueError(
                f"{name} does not give the outputs of its hidden layers; name layers "
                "of a functional Keras model (`hidden_layers=[...]`), or give it a "
                "method `hidden_features(tokens, states=None, training=False)`."
            )
        if not getattr(self.model, "inputs", None):
            raise ValueError(
                f"`hidden_layers` are of a functional Keras model; {name} is none."
            )
        known = [layer.name for layer in self.model.layers]
        unknown = [layer for layer in self.hidden_layers if layer not in known]
        if unknown:
            raise ValueError(
                f"{name} has no layer {', '.join(map(repr, unknown))} among "
                f"`hidden_layers`; it has {', '.join(known)}."
            )
        hidden = [self.model.get_layer(layer).output for layer in self.hidden_layers]
        return keras.Model(self.model.inputs, [*hidden, self.model.output])


class StatesInterface(LanguageModelInterface):
    """Runs a model with `zero_states`, `forward` and `output_logits` by them."""

    has_states = True

    def zero_states(self, batch_size: int | tf.Tensor) -> Any:
        return self.model.zero_states(batch_size)

    def forward(
        self, tokens: tf.Tensor, states: Any, training: bool = False
    ) -> tuple[tf.Tensor, Any]:
        if not training:
            return self.model.forward(tokens, states)
        return self.model.forward(tokens, states, training=True)

    def output_logits(
        self, features: tf.Tensor, temperature: float | tf.Tensor = 1.0
    ) -> tf.Tensor:
        if isinstance(temperature, float) and temperature == 1.0:
            return self.model.output_logits(features)
        return self.model.output_logits(features, temperature)


class MemoryInterface(StatesInterface):
    """Runs a `StatefulLanguageModel`: its outputs are features before the softmax."""

    has_features = True

    def whole_logits(self, x: Any, training: bool) -> tf.Tensor:
        return self.model(x, training=training)

    def outputs(self, x: Any, training: bool) -> tf.Tensor:
        return self.model.features(x, training=training)

    def recorded_outputs(self) -> AbstractContextManager[dict[str, Any]]:
        return recording({"outputs": self.model}, method="features")

    def starting_states(self, x: Any) -> Any:
        if isinstance(x, tuple | list):
            return self.model.starting_states(x[1], training=True)
        return self.model.zero_states(tf.shape(x)[0], training=True)

    def evaluation_outputs(self, x: Any, states: Any) -> tf.Tensor:
        features, _ = self.forward(tokens_of(x), states)
        return features

    def read(
        self, tokens: tf.Tensor, training: bool = False
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        states = self.zero_states(tokens.shape[0] or tf.shape(tokens)[0])
        collected: list[tf.Tensor] = []
        features, _ = self.model.forward(tokens, states, training, collected)
        return [tf.transpose(h, [1, 0, 2]) for h in collected], features

    def last_logits(
        self, windows: tf.Tensor, last: tf.Tensor, states: Any = None
    ) -> tf.Tensor:
        if states is None:
            states = self.zero_states(tf.shape(windows)[0])
        features, _ = self.forward(windows, states)
        features = tf.gather(features, last, batch_dims=1)
        return at_least_single(self.output_logits(features))

    def nll(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        return self.model.nll(outputs, targets)

    def logits(self, outputs: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
        return at_least_single(self.output_logits(tf.gather(flat, rows)))

    def joint(
        self, outputs: tf.Tensor, targets: tf.Tensor, several: Sequence[Groups]
    ) -> JointLosses:
        return self.model.joint_nll(outputs, targets, several)

    def joint_soft(
        self, outputs: tf.Tensor, targets: tf.Tensor, probs: Distributions
    ) -> SoftTargetLoss:
        return self.model.joint_soft_nll(outputs, targets, probs)


def language_model_of(model: keras.Model) -> keras.Model:
    """Returns the language model that a training wrapper holds, or itself.

    A wrapper says `wraps_language_model` and holds it as `.model`.
    """
    while getattr(model, "wraps_language_model", False):
        model = model.model
    return model


def interface_of(
    model: keras.Model, hidden_layers: Sequence[str] = ()
) -> LanguageModelInterface:
    """Returns the interface that fits a language model, or the one in a wrapper.

    Args:
        model: The model.
        hidden_layers: See `LanguageModelInterface`.
    """
    model = language_model_of(model)
    if hidden_layers and hasattr(model, "hidden_features"):
        raise ValueError(
            f"`hidden_layers` are of a functional Keras model; {type(model).__name__} "
            "says itself what its hidden layers give."
        )
    if _has(model, _MEMORY):
        return MemoryInterface(model)
    if _has(model, _STATES):
        return StatesInterface(model, hidden_layers)
    return LanguageModelInterface(model, hidden_layers)


def _has(model: keras.Model, methods: tuple[str, ...]) -> bool:
    return all(hasattr(model, name) for name in methods)

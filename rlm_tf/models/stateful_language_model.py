"""A language model that goes on from window to window of its streams."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_ids, check_shapes
from rlm_tf.layers.carried_state import CarriedState
from rlm_tf.layers.softmax_output import SoftmaxOutput
from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity
from rlm_tf.models.batch import check_batch, tokens_of
from rlm_tf.models.objective_model import ObjectiveModel
from rlm_tf.models.term import Term
from rlm_tf.objectives.in_batch import Groups
from rlm_tf.objectives.linear_in_batch import JointLoss

LayerStates = list[list[tf.Tensor]]


class StatefulLanguageModel(ObjectiveModel):
    """Base class: features from recurrent layers, a softmax, and two memories.

    It is called in two ways. `model(tokens)` starts from zero states and has no memory.
    `model((tokens, start))` goes on where the last window ended, except in rows whose
    `start` is 1, which start from zero. Training and evaluation have a memory each, so
    validation inside `fit()` does not disturb training. The memory is not a weight:
    `.keras` files leave it out, `tf.train.Checkpoint(model=model)` keeps it.

    `fit()` takes batches `((tokens, start), next_tokens, weights)` or
    `(tokens, next_tokens, weights)`, all `[B, T]` but `start` `[B]`.

    A subclass sets `output_layer`, calls `create_memory`, and implements `forward` and
    `feature_width`.

    Args:
        clip_norm: See `ObjectiveModel`.
        loss_scale: See `ObjectiveModel`.
        bits_per_character: Whether training and evaluation log that metric, too.
        **kwargs: Of `keras.Model`.
    """

    output_layer: SoftmaxOutput

    def __init__(
        self,
        *,
        clip_norm: float | None = None,
        loss_scale: float = 1.0,
        bits_per_character: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            term_names=("nll",), clip_norm=clip_norm, loss_scale=loss_scale, **kwargs
        )
        self.bits_per_character = bits_per_character
        if bits_per_character:
            self.term_metrics["nll"].append(BitsPerCharacter())

    def create_memory(self, state_sizes: list[list[int]]) -> None:
        """Creates the carried states.

        Args:
            state_sizes: The sizes of each layer's states.
        """
        self._state_sizes = [list(sizes) for sizes in state_sizes]
        flat = [size for sizes in self._state_sizes for size in sizes]
        self.training_state = CarriedState(flat, self.variable_dtype, "training_state")
        self.evaluation_state = CarriedState(
            flat, self.variable_dtype, "evaluation_state"
        )

    # === Computation ===

    def forward(
        self, tokens: tf.Tensor, states: LayerStates, training: bool = False
    ) -> tuple[tf.Tensor, LayerStates]:
        """Runs one window from given states; reads and writes no memory.

        Args:
            tokens: Int `[B, T]`, T >= 1.
            states: A list of the states of each layer, like `zero_states`.
            training: Whether dropout acts.

        Returns:
            Features `[B, T, D]`, the softmax layer's input, and the new states.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `forward`.")

    def features(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the features `[B, T, D]` before the softmax layer.

        Args:
            inputs: `tokens` `[B, T]`, which start from zero states, or
                `(tokens, start)`, which go on from the carried states and update them.
            training: Whether dropout acts, and whose carried states are used.

        Raises:
            ValueError: If the axes are others, or the tokens no integers.
            InvalidArgumentError: If the batch size differs from the last window's and
                not every row starts a stream.
        """
        name = f"{type(self).__name__}.features"
        check_ids(name, tokens=tokens_of(inputs))
        if not isinstance(inputs, tuple | list):
            check_shapes(name, tokens=(inputs, "B T"))
            batch_size = inputs.shape[0] or tf.shape(inputs)[0]
            features, _ = self.forward(inputs, self.zero_states(batch_size), training)
            return features
        tokens, start = inputs
        check_shapes(name, tokens=(tokens, "B T"), start=(start, "B"))
        carried = self._carried(training)
        states = self.starting_states(start, training)
        features, new_states = self.forward(tokens, states, training)
        carried.write([state for layer in new_states for state in layer])
        return features

    def output_logits(self, features: tf.Tensor) -> tf.Tensor:
        """Maps features `[..., D]` to logits `[..., V]`."""
        return self.output_layer(features, tied_kernel=self.tied_kernel())

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns logits `[B, T, V]`; `inputs` as in `features`."""
        return self.output_logits(self.features(inputs, training=bool(training)))

    def nll(self, features: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """Returns the negative log-likelihood `[...]` of targets in nats.

        Equal to the cross-entropy of `output_logits(features)`, which it does not keep.
        """
        return self.output_layer(
            features, targets=targets, tied_kernel=self.tied_kernel()
        )

    def joint_nll(
        self, features: tf.Tensor, targets: tf.Tensor, groups: Groups
    ) -> JointLoss:
        """Returns `nll` `[B, T]` and the in-batch induced loss `[G]` in one softmax."""
        return self.output_layer.joint(
            features, targets, groups, tied_kernel=self.tied_kernel()
        )

    @property
    def feature_width(self) -> int:
        """Width D of the features."""
        raise NotImplementedError(f"{type(self).__name__} has no `feature_width`.")

    def tied_kernel(self) -> tf.Tensor | None:
        """Returns the `[V, D]` matrix that the output layer borrows, or None."""
        return None

    # === States ===

    def zero_states(self, batch_size: int | tf.Tensor) -> LayerStates:
        """Returns zero states `[batch_size, S]`, a list for each layer."""
        return [
            [tf.zeros([batch_size, size], self.compute_dtype) for size in sizes]
            for sizes in self._state_sizes
        ]

    def carried_states(self, training: bool = False) -> LayerStates:
        """Returns the states from which the next window goes on (before `start`)."""
        carried = self._carried(training)
        return self._by_layer([tf.convert_to_tensor(v) for v in carried.values])

    def starting_states(self, start: tf.Tensor, training: bool = False) -> LayerStates:
        """Returns the states with which the next window starts; writes no memory.

        Args:
            start: Int `[B]`; rows where it is 1 start from zero.
            training: Whose carried states.
        """
        carried = self._carried(training)
        return self._by_layer(carried.read(start))

    def reset_states(self, batch_size: int | None = None) -> None:
        """Sets the carried states to zero, as if `batch_size` streams had just started.

        Start flags make this unnecessary, with one exception: with `jit_compile=True`,
        XLA cannot change the batch size of a step that was compiled before, or that
        learns its batch size only at run time; give it here first.

        Args:
            batch_size: Number of streams; None keeps their number.
        """
        self.training_state.reset(batch_size)
        self.evaluation_state.reset(batch_size)

    def _carried(self, training: bool) -> CarriedState:
        return self.training_state if training else self.evaluation_state

    def _by_layer(self, states: list[tf.Tensor]) -> LayerStates:
        rest = iter(states)
        return [[next(rest) for _ in sizes] for sizes in self._state_sizes]

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> list[Term]:
        check_batch(type(self).__name__, x, y, sample_weight)
        features = self.features(x, training=training)
        return [Term("nll", self.nll(features, y), sample_weight)]

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name), Perplexity()]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "bits_per_character": self.bits_per_character}

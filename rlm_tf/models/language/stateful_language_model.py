"""A language model that goes on from window to window of its streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_ids, check_integer, check_shapes
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.recurrent.carried_state import CarriedState
from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity
from rlm_tf.models.language.batch import checked_batch, tokens_of
from rlm_tf.models.language.dropout_samples import (
    LayerStates,
    apart,
    split,
    together,
)
from rlm_tf.numerics import at_least_single, log_mean_exp
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec
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


class StatefulLanguageModel(ObjectiveModel):
    """Base class: features from recurrent layers, a softmax, and two memories.

    It is called in two ways. `model(tokens)` starts from zero states and has no memory.
    `model((tokens, start))` goes on where the last window ended, except in rows whose
    `start` is 1, which start from zero. Training and evaluation have a memory each, so
    validation inside `fit()` does not disturb training. The memory is not a weight:
    `.keras` files leave it out, `tf.train.Checkpoint(model=model)` keeps it.

    `fit()` takes batches `((tokens, start), next_tokens, weights)` or
    `(tokens, next_tokens, weights)`, all `[B, T]` but `start` `[B]`.

    With D > 1 dropout samples, training runs every stream D times, each with masks and
    recurrent states of its own, and the loss of a token is that of the mean of its D
    probabilities (Melis 2023, 4.4): `-ln((1/D) sum_d p(w_t | w_<t, masks d))`. States
    and features of the D samples lie side by side on the last axis, so that one row
    still is one stream, and everything that reads features works as it does with one.

    A subclass sets `output_layer`, calls `create_memory`, and implements `run_window`
    and `feature_width`.

    Args:
        clip_norm: See `ObjectiveModel`.
        loss_scale: See `ObjectiveModel`.
        bits_per_character: Whether training and evaluation log that metric, too.
        dropout_samples: D, the number of dropout masks a training token is predicted
            under. The time of a step grows with it.
        **kwargs: `l2`, see `ObjectiveModel`, and those of `keras.Model`.

    Raises:
        ValueError: If an argument is out of range.
    """

    output_layer: SoftmaxOutput

    def __init__(
        self,
        *,
        clip_norm: float | None = None,
        loss_scale: float = 1.0,
        bits_per_character: bool = False,
        dropout_samples: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(clip_norm=clip_norm, loss_scale=loss_scale, **kwargs)
        check_integer(type(self).__name__, "dropout_samples", dropout_samples, 1)
        self.dropout_samples = dropout_samples
        self.bits_per_character = bits_per_character

    def create_memory(self, state_sizes: list[list[int]]) -> None:
        """Creates the carried states, given the sizes of each layer's."""
        self._state_sizes = [list(sizes) for sizes in state_sizes]
        flat = [size for sizes in self._state_sizes for size in sizes]
        self.training_state = CarriedState(
            [size * self.dropout_samples for size in flat],
            self.variable_dtype,
            "training_state",
        )
        self.evaluation_state = CarriedState(
            flat, self.variable_dtype, "evaluation_state"
        )

    # === Computation ===

    def forward(
        self,
        tokens: tf.Tensor,
        states: LayerStates,
        training: bool = False,
        collected: list[tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, LayerStates]:
        """Runs one window from given states; reads and writes no memory.

        Args:
            tokens: Int `[B, T]`, T >= 1.
            states: A list of the states of each layer, like `zero_states`. Their width
                tells how many dropout samples there are.
            training: Whether dropout acts.
            collected: See `run_window`; rows are those of all samples.

        Returns:
            Features `[B, T, F]`, the softmax layer's input (side by side those of the
            samples), and the new states.
        """
        samples = states[0][0].shape[-1] // self._state_sizes[0][0]
        if samples == 1:
            return self.run_window(tokens, states, training, collected)
        rows = apart(tokens, states, samples)
        features, new_states = self.run_window(*rows, training, collected)
        return together(features, new_states, samples)

    def run_window(
        self,
        tokens: tf.Tensor,
        states: LayerStates,
        training: bool,
        collected: list[tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, LayerStates]:
        """Runs one window of one sample a row; arguments and results as `forward`.

        What every layer gives, `[T, B, H]` before dropout, is appended to `collected`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `run_window`.")

    def features(
        self,
        inputs: Any,
        training: bool = False,
        collected: list[tf.Tensor] | None = None,
    ) -> tf.Tensor:
        """Returns the features `[B, T, F]` before the softmax layer.

        Args:
            inputs: `tokens` `[B, T]`, which start from zero states, or
                `(tokens, start)`, which go on from the carried states and update them.
            training: Whether dropout acts, and whose carried states are used.
            collected: See `run_window`.

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
            states = self.zero_states(batch_size, training)
            features, _ = self.forward(inputs, states, training, collected)
            return features
        tokens, start = inputs
        check_shapes(name, tokens=(tokens, "B T"), start=(start, "B"))
        carried = self._carried(training)
        if training:
            start = self.training_starts(start)
        states = self.starting_states(start, training)
        features, new_states = self.forward(tokens, states, training, collected)
        carried.write([state for layer in new_states for state in layer])
        return features

    def hidden_features(
        self,
        tokens: tf.Tensor,
        states: LayerStates | None = None,
        training: bool = False,
    ) -> list[tf.Tensor]:
        """Returns what every recurrent layer gives, the lowest first.

        Args:
            tokens: Int `[B, T]`, T >= 1.
            states: Of one sample a row, like `zero_states`; None: zero. No memory is
                read or written.
            training: Whether dropout acts on what layers read.

        Returns:
            `[B, T, H_l]` for each layer l, before the dropout on its outputs.
        """
        if states is None:
            states = self.zero_states(tokens.shape[0] or tf.shape(tokens)[0])
        collected: list[tf.Tensor] = []
        self.run_window(tokens, states, training, collected)
        return [tf.transpose(outputs, [1, 0, 2]) for outputs in collected]

    def training_starts(self, start: tf.Tensor) -> tf.Tensor:
        """Returns the rows `[B]` that start from zero states in a training step."""
        return start

    def output_logits(
        self, features: tf.Tensor, temperature: float | tf.Tensor = 1.0
    ) -> tf.Tensor:
        """Maps features `[..., F]` to logits `[..., V]`.

        Args:
            features: What `forward` returned.
            temperature: T of `p_i^{1/T} / sum_j p_j^{1/T}`; of mixtures and of means
                over dropout samples, that of their parts.
        """

        def logits(rows: tf.Tensor) -> tf.Tensor:
            return self.output_layer(
                rows, tied_kernel=self.tied_kernel(), temperature=temperature
            )

        if not self._has_samples(features):
            return logits(features)
        samples = tf.nn.log_softmax(
            at_least_single(logits(split(features, self.feature_width)))
        )
        return log_mean_exp(samples, axis=-2)

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns logits `[B, T, V]`; `inputs` as in `features`."""
        return self.output_logits(self.features(inputs, training=bool(training)))

    def nll(self, features: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """Returns the negative log-likelihood `[...]` of targets in nats.

        Equal to the cross-entropy of `output_logits(features)`, which it does not keep.
        """
        kernel = self.tied_kernel()
        if not self._has_samples(features):
            return self.output_layer(features, targets=targets, tied_kernel=kernel)
        samples = split(features, self.feature_width)
        targets = tf.repeat(targets[..., tf.newaxis], samples.shape[-2], axis=-1)
        nll = self.output_layer(samples, targets=targets, tied_kernel=kernel)
        return -log_mean_exp(-nll, axis=-1)

    def target_log_probs(self, features: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """Returns the log-probability `[...]` of targets in nats, without a gradient.

        Equal to `-nll(features, targets)`, in memory that does not grow with V.
        """
        kernel = self.tied_kernel()
        if not self._has_samples(features):
            return self.output_layer.log_probs_at(features, targets, kernel)
        samples = split(features, self.feature_width)
        targets = tf.repeat(targets[..., tf.newaxis], samples.shape[-2], axis=-1)
        log_probs = self.output_layer.log_probs_at(samples, targets, kernel)
        return log_mean_exp(log_probs, axis=-1)

    def joint_nll(
        self, features: tf.Tensor, targets: tf.Tensor, several: Sequence[Groups]
    ) -> JointLosses:
        """Returns `nll` `[B, T]` and in-batch induced losses `[G]` in one softmax."""
        if self._has_samples(features):
            logits = self.output_logits(features)
            return cross_entropy_with_imms(logits, targets, several)
        return self.output_layer.joint(
            features, targets, several, tied_kernel=self.tied_kernel()
        )

    def joint_soft_nll(
        self, features: tf.Tensor, targets: tf.Tensor, probs: Distributions
    ) -> SoftTargetLoss:
        """Returns `nll` `[B, T]` and that of distributions `[N]` in one softmax."""
        if not self._has_samples(features):
            return self.output_layer.joint_soft(
                features, targets, probs, tied_kernel=self.tied_kernel()
            )
        logits = self.output_logits(features)
        flat = tf.reshape(logits, [-1, logits.shape[-1]])
        nll, soft = cross_entropy_with_soft_targets(
            flat, tf.reshape(targets, [-1]), probs
        )
        return SoftTargetLoss(tf.reshape(nll, tf.shape(targets)), soft)

    @property
    def training_feature_width(self) -> int:
        """Width of the features of all samples that training has."""
        return self.feature_width * self.dropout_samples

    @property
    def feature_width(self) -> int:
        """Width F of the features of one sample."""
        raise NotImplementedError(f"{type(self).__name__} has no `feature_width`.")

    def tied_kernel(self) -> tf.Tensor | None:
        """Returns the `[V, D]` matrix that the output layer borrows, or None."""
        return None

    def _has_samples(self, features: tf.Tensor) -> bool:
        return self.dropout_samples > 1 and features.shape[-1] != self.feature_width

    # === States ===

    def zero_states(
        self, batch_size: int | tf.Tensor, training: bool = False
    ) -> LayerStates:
        """Returns zero states `[batch_size, S]`, a list for each layer.

        Args:
            batch_size: Number of rows.
            training: Whether there is one for each dropout sample, `[batch_size, D S]`.
        """
        samples = self.dropout_samples if training else 1
        return [
            [
                tf.zeros([batch_size, size * samples], self.compute_dtype)
                for size in sizes
            ]
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

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("nll")]

    def objective_terms(
        self,
        x: Any,
        y: Any,
        sample_weight: Any,
        training: bool,
        collected: list[tf.Tensor] | None = None,
    ) -> dict[str, TermLoss]:
        size = getattr(self, "vocabulary_size", None)
        x, y = checked_batch(type(self).__name__, x, y, sample_weight, size)
        features = self.features(x, training, collected)
        return {"nll": TermLoss(self.nll(features, y), sample_weight)}

    def further_terms(
        self, collected: list[tf.Tensor], sample_weight: tf.Tensor | None
    ) -> dict[str, TermLoss]:
        """Returns the terms of training beside `nll`.

        Args:
            collected: An `Activations` list that `features` has filled.
            sample_weight: `[B, T]`, or None.
        """
        return {}

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        mean = keras.metrics.Mean(name=name)
        if name != "nll":
            return [mean]
        bits = [BitsPerCharacter()] if self.bits_per_character else []
        return [mean, Perplexity(), *bits]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "bits_per_character": self.bits_per_character,
            "dropout_samples": self.dropout_samples,
        }

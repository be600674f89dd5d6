"""The Keras model whose loss is a weighted sum of named terms."""

from __future__ import annotations

import math
import weakref
from typing import Any

import keras
import tensorflow as tf

from rlm_tf import gradients as gradient_lists
from rlm_tf.checks import check_range, plain_errors
from rlm_tf.metrics.perplexity import flat
from rlm_tf.objective_model.logged_model import LoggedModel
from rlm_tf.objective_model.reduction import Reduction
from rlm_tf.optimizers.decoupled_optimizer import decoupled_part_of
from rlm_tf.replicas import all_reduce, num_replicas
from rlm_tf.typing import Gradient


class ObjectiveModel(LoggedModel):
    """Base class: a custom `train_step` and `test_step` over named loss terms.

    A subclass declares its terms in `term_specs` and returns their losses by name from
    `objective_terms`. This class is the only place of the library that reduces losses
    over batch and replicas: `value = sum(loss * weights) / sum(weights)`, both sums
    over all replicas, so that for equal draws R replicas take the step that one device
    takes, as far as the loss of an example is its own: what a term makes of several is
    made of those of its replica (`InBatchContexts` is the one case here). Keras
    optimisers sum gradients over replicas, which a bare mean per replica would multiply
    by R.

    Terms with a `clip_norm` are differentiated on their own and clipped before their
    coefficient multiplies them and before gradients are added. Without any, there is
    one backward pass. Clipping happens after the sum over replicas: `global_clipnorm`
    of a Keras optimiser clips each replica's share, which is something else.

    What layers add by `add_loss` or an `activity_regularizer` counts in full. Terms
    that compute their own gradient cannot take it into account; a layer that adds a
    loss only in the course of one is refused.

    Every term has a metric of its name (nats, weighted mean). `loss` is the total,
    averaged over steps with the first term's weights. Logs have only what is updated:
    no term of another phase, and evaluation neither terms that `objective_terms`
    returned for training alone nor metrics that were `declared` so. Keras' callbacks
    know from their `mode="auto"` which way is better, for terms and their metrics
    downwards; KerasTuner does not, and wants
    `keras_tuner.Objective("val_perplexity", "min")` instead of a name.

    Beside its terms a subclass may declare

    * `parts`, groups of layers by name. With `rlm_tf.optimizers.DecoupledOptimizer`
      each has an optimiser of its own, and a term may weigh its gradient by parts;
    * `frozen_models`, which are used and never trained: restricted models, teachers;
    * phases of terms. `phase`, 0 at first, counts in checkpoints and not in `.keras`
      files; `rlm_tf.training.SwitchPhase` moves it.

    A loaded `.keras` file goes on from its weights and optimiser, but its seed
    generators begin anew, as everywhere in Keras: dropout and samples are other ones
    than without the break. `rlm_tf.training.ExactResume` keeps them.

    Args:
        term_names: Names of all terms, of subclasses that return a list of `Term` from
            `objective_terms` in place of declaring `term_specs`.
        clip_norm: The gradient of the total is clipped to this global norm; None or
            infinity: not.
        loss_scale: Multiplies the total loss, not the metrics. With the window length
            T it makes a per-token mean the "sum over time, mean over batch" to which
            published learning rates and clipping norms of recurrent models refer. The
            mean is over the tokens that count: in a batch with padding, such as the
            last of an epoch, each of them weighs more than in the published code.
        l2: Adds `l2 / 2 * |w|^2` over all trainable weights, biases included, to the
            scaled loss, before it is clipped (where terms are clipped on their own, it
            is not clipped); `loss_scale` does not multiply it, and no metric counts it.
            So published penalties mean what they meant, too.
        **kwargs: Passed to `keras.Model`.

    Raises:
        ValueError: If `clip_norm` or `loss_scale` is not positive, or `l2` negative.
    """

    def __init__(
        self,
        *,
        term_names: tuple[str, ...] = (),
        clip_norm: float | None = None,
        loss_scale: float = 1.0,
        l2: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(term_names=term_names, **kwargs)
        if clip_norm is not None and not clip_norm > 0:
            raise ValueError(
                f"{type(self).__name__}: `clip_norm` must be positive or None, found "
                f"{clip_norm}."
            )
        if not loss_scale > 0:
            raise ValueError(
                f"{type(self).__name__}: `loss_scale` must be positive, found "
                f"{loss_scale}."
            )
        check_range(type(self).__name__, 0.0, math.inf, l2=l2)
        self.clip_norm = clip_norm
        self.loss_scale = loss_scale
        self.l2 = l2
        # Of the steps that were traced: names of their terms, and the variables (by
        # `id`) that these reach.
        self._trained_terms: frozenset[str] = frozenset()
        self._reached: frozenset[int] = frozenset()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures training as `keras.Model.compile`, without losses and metrics.

        Raises:
            ValueError: If a loss or metrics are given.
        """
        super().compile(*args, **kwargs)
        given = self.get_compile_config() or {}
        for name in ("loss", "loss_weights", "metrics", "weighted_metrics"):
            if given.get(name) is not None:
                raise ValueError(
                    f"{type(self).__name__}: leave `{name}` out of `compile()`: the "
                    "model computes its own loss terms and their metrics."
                )
        decoupled = decoupled_part_of(self.optimizer)
        if decoupled is not None:
            # Asked for later: some models have their variables after a first step.
            parts = weakref.WeakMethod(self.part_variables)
            decoupled.route(lambda: parts()())  # type: ignore[misc]

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `config` says; loading a file calls it."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        # Built twice, an optimiser that scales losses has variables twice.
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    # === Objective ===

    @property
    def total_clip_norm(self) -> float | None:
        """What the gradient of the total is clipped to; None: it is not."""
        return self.clip_norm

    @property
    def differentiates_apart(self) -> bool:
        """Whether a step differentiates more than once, term by term.

        A tape that lasts costs time in every graph. So it is where a term has a
        `clip_norm` or `part_factors`; a subclass that returns a list of `Term` with
        a `clip_norm` or `variable_factor` beside another term says so by overriding
        this.
        """
        return any(
            spec.counts(self._traced_phase, training=True)
            and not spec.brings_gradient
            and (spec.clip_norm is not None or spec.part_factors is not None)
            for spec in self.term_specs
        )

    def l2_of(self, variable: keras.Variable) -> float:
        """Strength of the penalty on a variable: `l2`, if nobody overrides it."""
        return self.l2

    # === Steps ===

    def make_train_function(self, force: bool = False) -> Any:
        # A function that makes variables when it is traced is traced once more.
        with self.distribute_strategy.scope():
            self._build_optimizer()
        return super().make_train_function(force)

    def _build_optimizer(self) -> None:
        if not self.optimizer.built and _is_whole(self):
            self.optimizer.build(self.trainable_variables)

    def train_step(self, data: Any) -> dict[str, Any]:
        # Before the control dependencies: XLA cannot lift variables out of them.
        self._build_optimizer()
        # Where data run out, nothing may change: without this, what needs no data (the
        # count of steps, sums of constant weights) goes on before the step fails.
        with tf.control_dependencies(_tensors(data)):
            return self._train_step(data)

    def _train_step(self, data: Any) -> dict[str, Any]:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        unit = self.optimizer.scale_loss(tf.constant(1.0))
        scale = unit * self.loss_scale
        # Of what ran before; a step may call no layer before it reads the list.
        self._clear_losses()
        with tf.GradientTape(persistent=self.differentiates_apart) as tape:
            terms = self._terms(x, y, sample_weight, training=True)
            # Not earlier: a model may build in its first step.
            variables = self.trainable_variables
            # Before replicas meet: the list of losses is shared by their threads.
            extra = self._extra_losses()
            counted = self._layers_with_losses()
            reductions = [Reduction(term) for term in terms]
            joint = [r.weighted_value() for r in reductions if not r.term.is_separate]
            if extra is not None:
                joint.append(extra)
            total = scale * gradient_lists.ordered_sum(joint) if joint else None
            separate = {
                r.term.name: scale * r.value()
                for r in reductions
                if r.term.is_separate and r.term.loss_and_gradient is None
            }
        if (total is not None) + len(separate) > 1 and not self.differentiates_apart:
            raise ValueError(
                f"{type(self).__name__}: `objective_terms` returned terms that are "
                f"differentiated apart ({', '.join(separate)}: `clip_norm` or "
                "`variable_factor`); override `differentiates_apart` to be True."
            )
        # A model that was not built before has its variables only now.
        variables = self.trainable_variables
        gradients: list[Gradient] = [None] * len(variables)
        if total is not None:
            gradients = gradient_lists.deduplicate_all(tape.gradient(total, variables))
        gradients = gradient_lists.add(gradients, self._penalty(variables, unit))
        # Clipping needs the sum over replicas; from the first clipped term on, all
        # gradients are sums.
        summed = self.joint_clip_norm is not None
        if summed:
            gradients = gradient_lists.sum_over_replicas(gradients)
            gradients = gradient_lists.clip(gradients, unit * self.joint_clip_norm)
        for reduction in reductions:
            term = reduction.term
            if not term.is_separate:
                continue
            if term.loss_and_gradient is None:
                own = tape.gradient(separate[term.name], variables)
            else:
                loss, own = term.loss_and_gradient(variables, scale * reduction.scale())
                self._check_losses_are(counted, term.name)
                reduction.set_loss(loss)
            own = gradient_lists.deduplicate_all(own)
            if term.clip_norm is not None and not summed:
                gradients = gradient_lists.sum_over_replicas(gradients)
                summed = True
            if summed:
                own = gradient_lists.sum_over_replicas(own)
            if term.clip_norm is not None:
                own = gradient_lists.clip(own, unit * term.clip_norm)
            if term.variable_factor is not None:
                own = [
                    gradient_lists.scale([g], term.variable_factor(v))[0]
                    for g, v in zip(own, variables, strict=True)
                ]
            own = gradient_lists.scale(own, term.coefficient)
            gradients = gradient_lists.add(gradients, own)
        del tape
        clips = self.total_clip_norm is not None
        # It skips a step if the gradients of the first replica are not finite: they
        # must have the overflow of all.
        skips = isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer)
        if not summed and (clips or skips or self.watches_gradients):
            gradients = gradient_lists.sum_over_replicas(gradients)
            summed = True
        if self.watches_gradients:
            self.watch_gradients(gradients, variables, unit)
        if clips:
            gradients = gradient_lists.clip(gradients, unit * self.total_clip_norm)
        factor = self.step_factor(x)
        if factor is not None:
            scaled = gradient_lists.scale(gradients, factor)
            gradients = [
                new if self.has_step_factor(variable) else old
                for variable, new, old in zip(variables, scaled, gradients, strict=True)
            ]
        if summed:
            # The optimiser is going to add up what every replica passes.
            gradients = gradient_lists.scale(gradients, 1.0 / num_replicas())
        if not self.optimizer.built:
            self.optimizer.build(variables)
        self.optimizer.apply(*self._without_resting(gradients, variables))
        return self._update_metrics(reductions, extra)

    def _penalty(
        self, variables: list[keras.Variable], unit: tf.Tensor
    ) -> list[Gradient]:
        """Returns this replica's share of the gradient of the penalty on weights."""
        strengths = [self.l2_of(variable) / num_replicas() for variable in variables]
        return [
            variable.value * tf.cast(unit * strength, variable.dtype)
            if strength
            else None
            for variable, strength in zip(variables, strengths, strict=True)
        ]

    def _without_resting(
        self, gradients: list[Gradient], variables: list[keras.Variable]
    ) -> tuple[list[Gradient], list[keras.Variable]]:
        """Leaves out variables that only terms of other phases reach.

        Keras warns of all that have no gradient, and should of those alone that no term
        reaches, which is known when every term has had its phase.
        """
        names = {spec.name for spec in self.term_specs if spec.trained}
        counted = {name for name in names if self.term_counts(name, training=True)}
        pairs = list(zip(gradients, variables, strict=True))
        self._trained_terms |= counted
        self._reached |= {id(v) for gradient, v in pairs if gradient is not None}
        kept = [
            (gradient, variable)
            for gradient, variable in pairs
            if gradient is not None
            or (names <= self._trained_terms and id(variable) not in self._reached)
        ]
        # Nothing at all is Keras' to refuse.
        if counted == names or all(gradient is None for gradient in gradients):
            kept = pairs
        return [gradient for gradient, _ in kept], [variable for _, variable in kept]

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.control_dependencies(_tensors(data)):
            terms = self._terms(x, y, sample_weight, training=False)
            extra = self._extra_losses()
            self._evaluated = frozenset(term.name for term in terms)
            reductions = [Reduction(term) for term in terms]
            return self._update_metrics(reductions, extra, training=False)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Trains as `keras.Model.train_on_batch`."""
        with plain_errors():
            return super().train_on_batch(*args, **kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.test_on_batch`."""
        with plain_errors():
            return super().test_on_batch(*args, **kwargs)

    # === Parts ===

    def _extra_losses(self) -> tf.Tensor | None:
        """Returns this replica's share of `self.losses`, or None."""
        if not self.losses:
            return None
        losses = [tf.cast(loss, tf.float32) for loss in self.losses]
        return gradient_lists.ordered_sum(losses) / num_replicas()

    def _layers_with_losses(self) -> list[keras.Layer]:
        """Returns the layers that have added a loss since the step began."""
        return [layer for layer in self._flatten_layers() if layer._losses]

    def _check_losses_are(self, counted: list[keras.Layer], term: str) -> None:
        """Raises ValueError if a layer has added a loss that nobody has counted."""
        for layer in self._layers_with_losses():
            if not any(layer is other for other in counted):
                raise ValueError(
                    f"{type(self).__name__}: layer `{layer.name}` "
                    f"({type(layer).__name__}) adds a loss (`add_loss` or "
                    f"`activity_regularizer`), which the gradient of the term `{term}` "
                    "does not know. Leave it out, or penalise weights instead "
                    "(`kernel_regularizer`, `l2`)."
                )

    def _update_metrics(
        self,
        reductions: list[Reduction],
        extra: tf.Tensor | None,
        training: bool = True,
    ) -> dict[str, Any]:
        total = tf.constant(0.0) if extra is None else extra
        for reduction in reductions:
            total += reduction.weighted_value()
            for metric in self.term_metrics[reduction.term.name]:
                metric.update_state(*flat(reduction.loss, reduction.weights))
        self.total_metric.update_state(
            all_reduce(total), sample_weight=tf.reduce_sum(reductions[0].weights)
        )
        return self._results(training)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        own = {
            "clip_norm": self.clip_norm,
            "loss_scale": self.loss_scale,
            "l2": self.l2,
        }
        return {**config, **own}


def _is_whole(model: keras.Model) -> bool:
    """Returns whether all variables exist: some models build in their first step."""
    layers = model._flatten_layers()
    return all(layer.built or not layer.trainable for layer in layers)


def _tensors(data: Any) -> list[tf.Tensor]:
    return [value for value in tf.nest.flatten(data) if tf.is_tensor(value)]

"""An objective around a language model, whose own terms and metrics stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.metrics.perplexity import Perplexity
from rlm_tf.models.language.batch import checked_batch
from rlm_tf.models.language.interface import interface_of
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec


class WrappedLanguageModel(ObjectiveModel):
    """Base class of models that train a language model by more than its own terms.

    Args:
        model: Any language model of this library, wrapped ones too; or a functional
            Keras model.
        hidden_layers: See `rlm_tf.models.language.interface.LanguageModelInterface`.
        clip_norm: See `ObjectiveModel`. None: what the wrapped model has.
        loss_scale: Likewise.
        l2: Likewise.
        **kwargs: Of `keras.Model`.

    Raises:
        ValueError: If the model is no Keras model, or not causal.
    """

    # Evaluation, generation and serving use `model` in place of the wrapper.
    wraps_language_model = True

    def __init__(
        self,
        model: keras.Model,
        *,
        hidden_layers: Sequence[str] = (),
        clip_norm: float | None = None,
        loss_scale: float | None = None,
        l2: float | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if not isinstance(model, keras.Model):
            raise ValueError(
                f"{name}: `model` must be a Keras model, found {type(model).__name__}."
            )

        def own_or_inner(option: str, own: Any, otherwise: Any) -> Any:
            return getattr(model, option, otherwise) if own is None else own

        # `compile` scales the loss by the policy of the outer model.
        kwargs = {"dtype": model.dtype_policy, **kwargs}
        super().__init__(
            clip_norm=own_or_inner("clip_norm", clip_norm, None),
            loss_scale=own_or_inner("loss_scale", loss_scale, 1.0),
            l2=own_or_inner("l2", l2, 0.0),
            **kwargs,
        )
        self.model = model
        self.hidden_layers = tuple(hidden_layers)
        self.view = interface_of(model, self.hidden_layers)
        self.view.check_causal(name)
        if hidden_layers:
            self.view.check_sees_no_later_token(name)
        self.vocabulary_size = self.view.vocabulary_size
        if hasattr(model, "count_steps"):
            # It is not compiled.
            model.count_steps(lambda: self.optimizer.iterations)

    # === Declarations ===

    @property
    def inner_specs(self) -> list[TermSpec]:
        """The terms of the wrapped model."""
        if isinstance(self.model, ObjectiveModel):
            return list(self.model.term_specs)
        return [TermSpec("nll")]

    @property
    def frozen_models(self) -> Sequence[keras.layers.Layer]:
        return getattr(self.model, "frozen_models", ())

    def step_factor(self, x: Any) -> float | tf.Tensor | None:
        if isinstance(self.model, ObjectiveModel):
            return self.model.step_factor(self.window_of(x))
        return None

    # === Computation ===

    def window_of(self, x: Any) -> Any:
        """Returns what the language model reads of a batch's inputs."""
        return x

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the language model's logits `[B, T, V]`."""
        return self.view.whole_logits(self.window_of(inputs), training=training)

    def language_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        """Returns the losses of the wrapped model by the names of its terms."""
        if isinstance(self.model, ObjectiveModel):
            found = self.model.objective_terms(x, y, sample_weight, training=training)
            if isinstance(found, list):
                raise ValueError(
                    f"{type(self).__name__}: {type(self.model).__name__} returns a "
                    "list of `Term`; a model to be wrapped must declare `term_specs`."
                )
            return dict(found)
        name, size = type(self).__name__, self.vocabulary_size
        x, y = checked_batch(name, x, y, sample_weight, size)
        outputs = self.view.outputs(x, training=training)
        return {"nll": TermLoss(self.view.nll(outputs, y), sample_weight)}

    def _variable_factor(
        self, spec: TermSpec
    ) -> Callable[[Any], float | tf.Tensor] | None:
        # Terms of the wrapped model name its parts.
        if any(spec.name == inner.name for inner in self.inner_specs):
            if not isinstance(self.model, ObjectiveModel):
                return None
            return self.model._variable_factor(spec)
        return super()._variable_factor(spec)

    # === Metrics ===

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        inner = self.model.term_specs if isinstance(self.model, ObjectiveModel) else []
        if any(name == spec.name for spec in inner):
            return self.model.make_term_metrics(name)
        metrics: list[keras.metrics.Metric] = [keras.metrics.Mean(name=name)]
        return [*metrics, Perplexity()] if name == "nll" else metrics

    @property
    def inner_metrics(self) -> list[keras.metrics.Metric]:
        if not isinstance(self.model, ObjectiveModel):
            return []
        of_terms = [m for metrics in self.model.term_metrics.values() for m in metrics]
        known = {metric.name for metric in [self.model.total_metric, *of_terms]}
        return [m for m in self.model.metrics[:-1] if m.name not in known]

"""The mean of independently trained language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.metrics.perplexity import Perplexity
from rlm_tf.models.language.batch import checked_batch, tokens_of
from rlm_tf.models.language.interface import StatesInterface, interface_of
from rlm_tf.numerics import at_least_single, log_mean_exp
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec


@keras.saving.register_keras_serializable("rlm_tf")
class EnsembleLanguageModel(ObjectiveModel):
    """Predicts the mean probability of several language models.

    Where text is fixed and compute is not, models of other seeds that are trained
    apart and averaged so are worth more than one larger model (Kim et al. 2025, arXiv
    2509.14786). A prediction costs that of all of them. It is evaluated by
    `rlm_tf.evaluation`, generates and is exported as each of them. Train them before:
    `fit()` would train all together, each window from zero states, which is also what
    Keras' own `evaluate()` reads.

    Args:
        models: Language models of one vocabulary with states (such as
            `RecurrentLanguageModel`), or wrappers around such; at least one.
        **kwargs: Of `ObjectiveModel` and `keras.Model`.

    Attributes:
        models: The language models, without wrappers.

    Raises:
        ValueError: If there is none, one has no states, or vocabularies differ.
    """

    def __init__(self, models: Sequence[keras.Model], **kwargs: Any) -> None:
        name = type(self).__name__
        models = list(models) if isinstance(models, list | tuple) else [models]
        if not models:
            raise ValueError(f"{name}: `models` has none; one at least is needed.")
        views = [interface_of(model) for model in models if _is_model(name, model)]
        for view in views:
            if not isinstance(view, StatesInterface):
                raise ValueError(
                    f"{name}: {type(view.model).__name__} carries no states "
                    "(`zero_states`, `forward`, `output_logits`)."
                )
        sizes = {view.vocabulary_size for view in views}
        if len(sizes) != 1:
            raise ValueError(
                f"{name}: `models` must be language models of one vocabulary, found "
                f"sizes {sorted(map(str, sizes))}."
            )
        super().__init__(**{"dtype": views[0].model.dtype_policy, **kwargs})
        self.models = [view.model for view in views]
        for index, model in enumerate(self.models):
            # tf.train.Checkpoint does not look into lists of a Keras model.
            setattr(self, f"model_{index}", model)
        (self.vocabulary_size,) = sizes
        self._views = views
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the models have their weights."""

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns log-probabilities `[B, T, V]` from zero states.

        Args:
            inputs: Tokens int `[B, T]`, or `(tokens, start)`; starts do not matter.
            training: Whether dropout acts.
        """
        tokens = tokens_of(inputs)
        size = tokens.shape[0] or tf.shape(tokens)[0]
        features, _ = self.forward(tokens, self.zero_states(size), training)
        return self.output_logits(features)

    def zero_states(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the states before the first token, of each model."""
        return tuple(view.zero_states(batch_size) for view in self._views)

    def forward(
        self, tokens: tf.Tensor, states: Any, training: bool = False
    ) -> tuple[tf.Tensor, Any]:
        """Runs int `[B, T]`; features `[B, T, F]` are those of all, side by side."""
        found = [
            view.forward(tokens, own, training)
            for view, own in zip(self._views, states, strict=True)
        ]
        features = [tf.cast(features, self.compute_dtype) for features, _ in found]
        return tf.concat(features, axis=-1), tuple(states for _, states in found)

    def output_logits(
        self, features: tf.Tensor, temperature: float | tf.Tensor = 1.0
    ) -> tf.Tensor:
        """Returns the logarithm of the mean probability, `[..., V]`.

        Args:
            features: Of `forward`.
            temperature: Of each model.
        """
        parts = tf.split(features, self._widths(), axis=-1)
        log_probs = [
            tf.nn.log_softmax(at_least_single(view.output_logits(part, temperature)))
            for view, part in zip(self._views, parts, strict=True)
        ]
        return log_mean_exp(tf.stack(log_probs))

    def _widths(self) -> list[int]:
        """Returns how many features each model has."""
        if not hasattr(self, "_feature_widths"):
            with tf.init_scope():
                token = tf.zeros([1, 1], tf.int32)
                self._feature_widths = [
                    int(view.forward(token, view.zero_states(1))[0].shape[-1])
                    for view in self._views
                ]
        return self._feature_widths

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("nll")]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        name = type(self).__name__
        x, y = checked_batch(name, x, y, sample_weight, self.vocabulary_size)
        log_probs = self(x, training=training)
        nll = -tf.gather(log_probs, tf.cast(y, tf.int32), axis=-1, batch_dims=2)
        return {"nll": TermLoss(nll, sample_weight)}

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        return [keras.metrics.Mean(name=name), Perplexity()]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        models = [serialize(model) for model in self.models]
        return {**super().get_config(), "models": models}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> EnsembleLanguageModel:
        """Returns the model of a config."""
        given = dict(config)
        models = [
            keras.saving.deserialize_keras_object(each, custom_objects)
            for each in given.pop("models")
        ]
        return cls(models, **given)


def _is_model(name: str, model: Any) -> bool:
    """Whether this is a Keras model; raises ValueError if not."""
    if not isinstance(model, keras.Model):
        raise ValueError(
            f"{name}: `models` must hold Keras models, found {type(model).__name__}."
        )
    return True

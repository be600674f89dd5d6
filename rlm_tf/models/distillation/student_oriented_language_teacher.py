"""A language model that is trained as a teacher."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.models.distillation.lipschitz_constants import lipschitz_constants
from rlm_tf.models.distillation.placed import flat_weights, window_and_places
from rlm_tf.models.distillation.teacher_epochs import TeacherEpochs
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.models.language.wrapped_language_model import WrappedLanguageModel
from rlm_tf.nested_config import made_objects
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.objectives.lipschitz import Norm
from rlm_tf.training.token_ensemble import TokenEnsemble


@keras.saving.register_keras_serializable("rlm_tf")
class StudentOrientedLanguageTeacher(TeacherEpochs, WrappedLanguageModel):
    """`StudentOrientedTeacher` of language models (SoTeacher; Dong 2025, chapter 2).

        nll + further terms + lambda_LR sum_layers Lip(layer)
            + lambda_CR(t) |f(x) - mean|^2 of each token

    The thesis has classifiers; here every token of the training text is an example,
    and of the mean of what earlier epochs said of it the k largest probabilities are
    kept. `fit()` takes batches of `PlacedBatches`,
    `(((tokens, start), places), next_tokens, weights)`. Calling, evaluating and
    exporting give the wrapped model, which is what students learn from.

    Logs: what the wrapped model logs, and in training `lipschitz` and `consistency`.

    Args:
        model: Any language model of this library, wrapped ones too.
        lipschitz: lambda_LR; 0: no such term.
        consistency: The largest lambda_CR; 0: no such term.
        ramp: How lambda_CR rises; see `rlm_tf.training.ramp`.
        epochs: T, at whose end lambda_CR is the largest.
        ensemble: A `rlm_tf.training.TokenEnsemble` of the training text. Neither
            weights nor files have it.
        norm: Of the constants: "one" or "inf".
        ignore: Paths of layers of the model without a constant; see
            `lipschitz_constants`.
        variant: `"thesis"`, or `"authors"`: the first epoch counts twice in the means.
        **kwargs: Of `WrappedLanguageModel`.

    Raises:
        ValueError: If an option or a number is out of range, the variant of `ensemble`
            is another, or a layer of `model` has no known constant.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        lipschitz: float = 1e-5,
        consistency: float = 1.0,
        ramp: str = "linear",
        epochs: int,
        ensemble: TokenEnsemble | None = None,
        norm: Norm = "one",
        ignore: Collection[str] = (),
        variant: Literal["thesis", "authors"] = "thesis",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, **kwargs)
        self.ensemble: TokenEnsemble | None
        self.take_options(
            lipschitz=lipschitz,
            consistency=consistency,
            ramp=ramp,
            epochs=epochs,
            norm=norm,
            ignore=ignore,
            variant=variant,
            ensemble=ensemble,
        )
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the model has its weights."""

    # === Declarations ===

    @property
    def memories(self) -> list[Any]:
        return [] if self.ensemble is None else [self.ensemble]

    @property
    def term_specs(self) -> list[TermSpec]:
        return [*self.inner_specs, *self.teaching_specs()]

    # === Computation ===

    def window_of(self, x: Any) -> Any:
        return window_and_places(x)[0]

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss]:
        window, places = window_and_places(x)
        with self.view.recorded_outputs() as found:
            terms = self.language_terms(window, y, sample_weight, training)
        if not training:
            return terms
        if self.lipschitz:
            terms["lipschitz"] = self.lipschitz_term()
        if self.consistency:
            every = tf.range(tf.size(y))
            logits = self.view.logits(found["outputs"], every)
            weights = flat_weights(y, sample_weight)
            terms["consistency"] = self._consistency(places, logits, weights)
        return terms

    def _consistency(
        self, places: Any, logits: tf.Tensor, weights: tf.Tensor
    ) -> TermLoss:
        """Returns distances to the means of earlier epochs, and adds to this one's."""
        name = type(self).__name__
        if self.ensemble is None:
            raise ValueError(
                f"{name}: no ensemble. A loaded model has none, because files never "
                "hold what is said of a text: give `ensemble=`, or set "
                "`teacher.ensemble` before fit()."
            )
        if places is None:
            raise ValueError(
                f"{name}: no places of tokens; expected batches (((tokens, start), "
                "places), next_tokens, weights), those of `PlacedBatches`, or "
                "`consistency=0`."
            )
        probs = tf.nn.softmax(logits)
        flat = tf.reshape(places, [-1])
        known = self.ensemble.targets(flat)
        own = tf.gather(probs, known.words, batch_dims=1)
        # The square of the difference, without an array of means over all words.
        means = tf.cast(known.probs, probs.dtype)
        distance = tf.reduce_sum(probs**2, axis=1)
        distance += tf.reduce_sum(means * (means - 2 * own), axis=1)
        self.ensemble.update(flat, probs, weights > 0)
        seen = tf.cast(known.counts > 0, tf.float32)
        return TermLoss(distance, weights * seen)

    def _constants(self) -> dict[str, tf.Tensor]:
        model = language_model_of(self.model)
        return lipschitz_constants(model, norm=self.norm, ignore=self.ignore)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "model": keras.saving.serialize_keras_object(self.model),
            **self.options(),
            # Never part of a file.
            "ensemble": None,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Returns the model of a config; it has no ensemble."""
        return cls(**made_objects(config, custom_objects))

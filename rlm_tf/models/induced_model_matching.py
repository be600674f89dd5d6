"""Induced model matching around any Keras language model."""

from __future__ import annotations

import weakref
from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity
from rlm_tf.metrics.quantiles import Quantiles
from rlm_tf.models.authors_variant import AuthorsVariant
from rlm_tf.models.batch import checked_batch
from rlm_tf.models.imm_arguments import (
    check_model,
    check_options,
    check_owner,
    check_pairs,
    induced_names,
    own_or_inner,
    shared_vocabulary_size,
)
from rlm_tf.models.in_batch_contexts import InBatchContexts
from rlm_tf.models.language_model_view import view_of
from rlm_tf.models.objective_model import ObjectiveModel
from rlm_tf.models.sampled_contexts import SampledContexts
from rlm_tf.models.term import Coefficient, LossAndGradient, Term, coefficient_at
from rlm_tf.restricted.restricted_model import RestrictedModel

Contexts = InBatchContexts | SampledContexts


@keras.saving.register_keras_serializable("rlm_tf")
class InducedModelMatching(ObjectiveModel):
    """Trains a language model on `cross-entropy + lambda * IMM`, Eq. (11).

    The wrapped model is any Keras model that maps tokens `[B, T]` to logits
    `[B, T, V]`. With a `RecurrentLanguageModel`, `(tokens, start)` carries the state.
    Only `fit()` knows of IMM; calling, evaluating and exporting give the wrapped model.

    A position counts if its short context lies whole in its window and if the contexts
    find extended contexts for it; the others have weight 0 in the IMM term.

    The `.keras` file holds the language model and the restricted models, never the
    training text: import `rlm_tf.models` before, and assign `contexts` after loading.

    Args:
        model: The language model, the full model `Q`.
        restricted_model: A restricted model `P_hat`, or a list of pairs (restricted
            model, coefficient).
        contexts: Where extended contexts come from, `InBatchContexts` or
            `SampledContexts`.
        coefficient: `lambda`, a number or a schedule of the optimiser's step; unused
            when `restricted_model` is a list.
        every: With sampled contexts, the k-sample term is computed at every so many
            steps; at the others it has one sample (appendix D.2).
        gradient: `"direct"`, or `"crosstalk"`: with sampled contexts, one sample at a
            time in constant memory.
        variant: `"paper"`, or `"authors"`: with sampled contexts, what the published
            code does and the text does not say. The gradient of IMM is not clipped;
            steps without k samples match soft targets in the main pass (dropout on);
            the embedding gets twice the main gradient, once IMM is active, and none of
            the k-sample gradient. Give it `SampledContexts(truncated=True)`, which is
            the authors' way, too. Not repeated: their k-sample steps move by one from
            epoch to epoch, and the first batch of every text is neither trained on nor
            evaluated.
        clip_norm: With in-batch contexts the gradient of the total is clipped to this
            norm; with separate clipping (always with sampled contexts) each term's
            gradient is, before its coefficient multiplies it. None: what the wrapped
            model has; `math.inf`: no clipping.
        loss_scale: See `ObjectiveModel`. None: what the wrapped model has.
        l2: See `ObjectiveModel`. None: what the wrapped model has.
        **kwargs: Of `keras.Model`.

    Raises:
        ValueError: If an option is unknown or does not fit the contexts, if these are
            another wrapper's, or if the vocabularies of the models differ.
    """

    # Evaluation, generation and serving use `model` in place of the wrapper.
    wraps_language_model = True

    def __init__(
        self,
        model: keras.Model,
        restricted_model: RestrictedModel | list[tuple[RestrictedModel, Coefficient]],
        contexts: Contexts | None = None,
        coefficient: Coefficient = 0.2,
        every: int = 1,
        gradient: Literal["direct", "crosstalk"] = "direct",
        *,
        variant: Literal["paper", "authors"] = "paper",
        clip_norm: float | None = None,
        loss_scale: float | None = None,
        l2: float | None = None,
        **kwargs: Any,
    ):
        check_model(model)
        pairs = restricted_model
        if not isinstance(pairs, list):
            pairs = [(pairs, coefficient)]
        check_pairs(pairs)
        names = induced_names(len(pairs))
        soft = [f"{name}_soft" for name in names] if variant == "authors" else []
        # `compile` scales the loss by the policy of the outer model.
        kwargs = {"dtype": model.dtype_policy, **kwargs}
        super().__init__(
            term_names=("nll", *names, *soft),
            # The wrapped model's own step, which knows them, is not taken.
            clip_norm=own_or_inner("clip_norm", clip_norm, model, None),
            loss_scale=own_or_inner("loss_scale", loss_scale, model, 1.0),
            l2=own_or_inner("l2", l2, model, 0.0),
            **kwargs,
        )
        check_options(every, gradient, variant)
        if getattr(model, "bits_per_character", False):
            self.term_metrics["nll"].append(BitsPerCharacter())
        self.model = model
        self.restricted_models = [restricted for restricted, _ in pairs]
        self.coefficients = [coefficient for _, coefficient in pairs]
        for index, restricted in enumerate(self.restricted_models):
            restricted.trainable = False
            # tf.train.Checkpoint does not look into lists of a Keras model.
            setattr(self, f"restricted_{index}", restricted)
        self.vocabulary_size = shared_vocabulary_size(model, self.restricted_models)
        self.every = every
        self.gradient = gradient
        self.variant = variant
        self.induced_names = names
        self.view = view_of(model)
        # Not a weight: a loaded file must not keep IMM off, nor reloaded best weights.
        self.active = tf.Variable(1.0, trainable=False, name="active")
        self.coverage_metric = _of_training(keras.metrics.Mean(name="imm_coverage"))
        self.count_metric = _of_training(keras.metrics.Mean(name="imm_count"))
        # Three numbers more would fill the progress bar.
        self.count_quantiles = _of_training(Quantiles(name="imm_count"), in_logs=False)
        self.authors: AuthorsVariant | None = None
        self._contexts: Contexts | None = None
        if contexts is not None:
            self.contexts = contexts
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the wrapped models have their weights."""

    @property
    def contexts(self) -> Contexts | None:
        """Where extended contexts come from; None after loading."""
        return self._contexts

    @contexts.setter
    def contexts(self, contexts: Contexts) -> None:
        if not isinstance(contexts, InBatchContexts | SampledContexts):
            raise ValueError(
                "InducedModelMatching: `contexts` must be InBatchContexts or "
                f"SampledContexts, found {type(contexts).__name__}."
            )
        check_owner(contexts, self)
        contexts.prepare(self)
        if self.variant == "authors":
            self.authors = AuthorsVariant(self)
        if self._contexts is not None:
            self._contexts.owner = None
        contexts.owner = weakref.ref(self)
        self._contexts = contexts
        # A step that was traced before would go on with the old contexts.
        self.train_function = None

    def compile(self, *args: Any, jit_compile: bool | str = "auto", **kwargs: Any):
        """Configures training as `keras.Model.compile`; `"auto"` means no XLA.

        Raises:
            ValueError: If `jit_compile` is True.
        """
        if jit_compile is True:
            raise ValueError(
                "InducedModelMatching: `jit_compile=True` is not possible: the groups "
                "of a batch and the rows of n-gram tables are ragged, and XLA compiles "
                "static shapes only. Leave it out: the recurrent loop is compiled "
                "anyway (`jit_loop`)."
            )
        super().compile(*args, jit_compile=False, **kwargs)

    @property
    def total_clip_norm(self) -> float | None:
        """None where each term is clipped on its own."""
        separate = self.contexts is not None and self.contexts.separate_clipping
        return None if separate else self.clip_norm

    @property
    def differentiates_apart(self) -> bool:
        clips = self.clip_norm is not None and self.total_clip_norm is None
        return clips or self.authors is not None

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the language model's logits `[B, T, V]`."""
        return self.view.whole_logits(inputs, training=training)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> list[Term]:
        x, y = checked_batch(
            type(self).__name__,
            x,
            y,
            sample_weight,
            self.vocabulary_size,
            # Models of one's own may have inputs that they never predict.
            only_counted=not self.view.has_features,
        )
        if not training:
            outputs = self.view.outputs(x, training=False)
            return [Term("nll", self.view.nll(outputs, y), sample_weight)]
        if self.contexts is None:
            raise ValueError(
                "InducedModelMatching: no contexts. A loaded model has none, because "
                "files never hold the training text: set `model.contexts = "
                "InBatchContexts(...)` or `SampledContexts(tokens, ...)` before fit()."
            )
        return self.contexts.terms(self, x, y, sample_weight)

    def induced_term(
        self,
        index: int,
        loss: tf.Tensor | None,
        weights: tf.Tensor,
        *,
        clip_norm: float | None,
        loss_and_gradient: LossAndGradient | None = None,
    ) -> Term:
        """Returns the IMM term of one restricted model; contexts call it."""
        return Term(
            self.induced_names[index],
            loss,
            weights,
            coefficient=self._coefficient(index),
            clip_norm=clip_norm,
            loss_and_gradient=loss_and_gradient,
        )

    def soft_target_term(self, index: int, loss: tf.Tensor, weights: tf.Tensor) -> Term:
        """Returns the term of variant "authors" at steps without k samples."""
        name = f"{self.induced_names[index]}_soft"
        return Term(name, loss, weights, coefficient=self._coefficient(index))

    def _coefficient(self, index: int) -> tf.Tensor:
        value = coefficient_at(self.coefficients[index], self.optimizer.iterations)
        return tf.cast(value, tf.float32) * tf.cast(self.active, tf.float32)

    def is_active(self) -> tf.Tensor:
        """Returns bool scalar: False until a start rule lets IMM begin."""
        return tf.convert_to_tensor(self.active) > 0

    # === Metrics ===

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        metrics = [keras.metrics.Mean(name=name)]
        return [*metrics, Perplexity()] if name == "nll" else metrics

    def record_counts(self, counts: tf.Tensor, least: int | tf.Tensor) -> None:
        """Logs how many predictions stand behind the induced model of each position.

        Args:
            counts: int `[N]`, for every position with a whole short context and a
                sample weight above 0.
            least: Fewer than these do not count.
        """
        self.count_quantiles.update_state(counts)
        counts = tf.cast(counts, tf.float32)
        self.coverage_metric.update_state(counts >= tf.cast(least, tf.float32))
        self.count_metric.update_state(counts)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        pairs = zip(self.restricted_models, self.coefficients, strict=True)
        return {
            **super().get_config(),
            "model": serialize(self.model),
            "restricted_model": [(serialize(r), serialize(c)) for r, c in pairs],
            "every": self.every,
            "gradient": self.gradient,
            "variant": self.variant,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> InducedModelMatching:
        made = keras.saving.deserialize_keras_object
        pairs = [(made(r), made(c)) for r, c in config["restricted_model"]]
        own = {"model": made(config["model"]), "restricted_model": pairs}
        return cls(**{**config, **own})


def _of_training(
    metric: keras.metrics.Metric, in_logs: bool = True
) -> keras.metrics.Metric:
    return declared(metric, "up", only_training=True, in_logs=in_logs)

"""Induced model matching around any Keras language model."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity
from rlm_tf.metrics.quantiles import Quantiles
from rlm_tf.models.imm.arguments import (
    check_options,
    check_pairs,
    check_terms,
    shared_vocabulary_size,
)
from rlm_tf.models.imm.authors_variant import AuthorsVariant
from rlm_tf.models.imm.in_batch_contexts import InBatchContexts
from rlm_tf.models.imm.matching import Matching, Window
from rlm_tf.models.imm.own_contexts import OwnContexts
from rlm_tf.models.imm.sampled_contexts import SampledContexts
from rlm_tf.models.language.batch import checked_batch
from rlm_tf.models.language.interface import interface_of
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import (
    Coefficient,
    TermLoss,
    TermSpec,
)
from rlm_tf.restricted.restricted_model import RestrictedModel

Contexts = InBatchContexts | OwnContexts | SampledContexts


@keras.saving.register_keras_serializable("rlm_tf")
class InducedModelMatching(ObjectiveModel):
    """Trains a language model on `cross-entropy + lambda * IMM`, Eq. (11).

    The wrapped model is any Keras model that maps tokens `[B, T]` to logits
    `[B, T, V]`. With a `RecurrentLanguageModel`, `(tokens, start)` carries the state.
    Only `fit()` knows of IMM; calling, evaluating and exporting give the wrapped model.

    A position counts if its short context lies whole in its window and if the contexts
    find extended contexts for it; the others have weight 0 in the IMM term.

    The `.keras` file holds the language model and the restricted models, never the
    training text: `rlm_tf.load_model` loads it; assign `contexts` afterwards.

    Args:
        model: The language model, the full model `Q`.
        restricted_model: A restricted model `P_hat`, or a list of pairs (restricted
            model, coefficient).
        contexts: Where extended contexts come from, `InBatchContexts`,
            `SampledContexts` or `OwnContexts`.
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
            another wrapper's, if the vocabularies of the models differ, or if the
            language model trains on more terms than `nll`.
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
        if not isinstance(model, keras.Model):
            raise ValueError(
                "InducedModelMatching: `model` must be a Keras model, found "
                f"{type(model).__name__}."
            )
        pairs = restricted_model
        if not isinstance(pairs, list):
            pairs = [(pairs, coefficient)]
        check_pairs(pairs)
        # `compile` scales the loss by the policy of the outer model.
        kwargs = {"dtype": model.dtype_policy, **kwargs}
        super().__init__(
            # The wrapped model's own step, which knows them, is not taken.
            clip_norm=_own_or_inner("clip_norm", clip_norm, model, None),
            loss_scale=_own_or_inner("loss_scale", loss_scale, model, 1.0),
            l2=_own_or_inner("l2", l2, model, 0.0),
            **kwargs,
        )
        check_options(every, gradient, variant)
        check_terms(model)
        self.model = model
        self.restricted_models = [restricted for restricted, _ in pairs]
        self.coefficients = [coefficient for _, coefficient in pairs]
        for index, restricted in enumerate(self.restricted_models):
            # tf.train.Checkpoint does not look into lists of a Keras model.
            setattr(self, f"restricted_{index}", restricted)
        self.vocabulary_size = shared_vocabulary_size(model, self.restricted_models)
        self.every = every
        self.gradient = gradient
        self.variant = variant
        self.induced_names = ["imm"]
        if len(pairs) > 1:
            self.induced_names = [f"imm_{index}" for index in range(len(pairs))]
        self.view = interface_of(model)
        # Not a weight: a loaded file must not keep IMM off, nor reloaded best weights.
        self.active = tf.Variable(1.0, trainable=False, name="active")
        self.coverage_metric = _of_training(keras.metrics.Mean(name="imm_coverage"))
        self.count_metric = _of_training(keras.metrics.Mean(name="imm_count"))
        # Three numbers more would fill the progress bar.
        self.count_quantiles = _of_training(Quantiles(name="imm_count"), in_logs=False)
        self.authors: AuthorsVariant | None = None
        self._steps: Callable[[], Any] = lambda: self.optimizer.iterations
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
        if not isinstance(contexts, InBatchContexts | OwnContexts | SampledContexts):
            raise ValueError(
                "InducedModelMatching: `contexts` must be InBatchContexts, "
                f"SampledContexts or OwnContexts, found {type(contexts).__name__}."
            )
        owner = None if contexts.owner is None else contexts.owner()
        if owner is not None and owner is not self:
            raise ValueError(
                "InducedModelMatching: `contexts` already belong to another wrapper, "
                "whose short contexts and banks they hold; make new ones for this one."
            )
        contexts.prepare(self.matching)
        if self.variant == "authors":
            self.authors = AuthorsVariant(self.matching)
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
    def matching(self) -> Matching:
        """Which models are matched and how."""
        return Matching(
            self.view,
            self.restricted_models,
            self.vocabulary_size,
            self.every,
            self.gradient,
            self.variant,
        )

    # === Declarations ===

    @property
    def term_specs(self) -> list[TermSpec]:
        authors = self.variant == "authors"
        clip = self.clip_norm if self._clips_apart else None
        main, sampled = None, None
        if authors:
            main = {"embedding": 1.0 + tf.cast(self.active, tf.float32)}
            sampled = {"embedding": 0.0}
        induced, soft = [], []
        for name, coefficient in zip(
            self.induced_names, self.coefficients, strict=True
        ):
            spec = TermSpec(name, coefficient, switch=self.active, evaluated=False)
            soft.append(spec._replace(name=f"{name}_soft"))
            induced.append(
                spec._replace(
                    clip_norm=None if authors else clip,
                    brings_gradient=getattr(self.contexts, "brings_gradient", False),
                    part_factors=sampled,
                )
            )
        nll = TermSpec("nll", clip_norm=clip, part_factors=main)
        return [nll, *induced, *(soft if authors else [])]

    def step_factor(self, x: Any) -> float | tf.Tensor | None:
        if isinstance(self.model, ObjectiveModel):
            return self.model.step_factor(x)
        return None

    @property
    def parts(self) -> Mapping[str, Sequence[Any]]:
        """Those of the language model."""
        parts = getattr(self.model, "parts", {})
        if self.variant == "authors" and "embedding" not in parts:
            embedding = getattr(self.model, "embedding", None)
            parts = {**parts, "embedding": [] if embedding is None else [embedding]}
        return parts

    @property
    def frozen_models(self) -> list[keras.layers.Layer]:
        return [*self.restricted_models, *getattr(self.model, "frozen_models", ())]

    @property
    def total_clip_norm(self) -> float | None:
        """None where each term is clipped on its own."""
        return None if self._clips_apart else self.clip_norm

    @property
    def _clips_apart(self) -> bool:
        return self.contexts is not None and self.contexts.separate_clipping

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the language model's logits `[B, T, V]`."""
        return self.view.whole_logits(inputs, training=training)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
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
            return {"nll": TermLoss(self.view.nll(outputs, y), sample_weight)}
        if self.contexts is None:
            raise ValueError(
                "InducedModelMatching: no contexts. A loaded model has none, because "
                "files never hold the training text: set `model.contexts = "
                "InBatchContexts(...)` or `SampledContexts(tokens, ...)` before fit()."
            )
        step = tf.cast(self._steps(), tf.int64)
        window = Window(x, y, sample_weight, step, self.is_active())
        found = self.contexts.match(self.matching, window)
        terms = {"nll": TermLoss(found.nll, sample_weight)}
        for index, induced in enumerate(found.induced):
            name = self.induced_names[index]
            self.record_counts(induced.counts, induced.least)
            terms[name] = TermLoss(
                induced.loss, induced.weights, induced.loss_and_gradient
            )
            if self.authors is not None:
                terms[f"{name}_soft"] = self.authors.soft_term(index, window, found)
        return terms

    def count_steps(self, steps: Callable[[], Any]) -> None:
        """Has a wrapper around this one say how many steps there were.

        Args:
            steps: Returns an int scalar.
        """
        self._steps = steps

    def is_active(self) -> tf.Tensor:
        """Returns bool scalar: False until a start rule lets IMM begin."""
        return tf.convert_to_tensor(self.active) > 0

    # === Metrics ===

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        metrics = [keras.metrics.Mean(name=name)]
        if name == "nll":
            bits = getattr(self.model, "bits_per_character", False)
            metrics += [Perplexity(), *([BitsPerCharacter()] if bits else [])]
        return metrics

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


def _of_training(
    metric: keras.metrics.Metric, in_logs: bool = True
) -> keras.metrics.Metric:
    return declared(metric, "up", only_training=True, in_logs=in_logs)


def _own_or_inner(name: str, own: Any, model: keras.Model, otherwise: Any) -> Any:
    """Returns the wrapper's value of an option, or else the wrapped model's."""
    return getattr(model, name, otherwise) if own is None else own

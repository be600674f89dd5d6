"""The bootstrapped mutual-information regulariser around any language model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_range
from rlm_tf.data.batches.pair_batch import PairBatch
from rlm_tf.layers.basic.pair_discriminator import PairDiscriminator
from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.mine_bound import MineBound
from rlm_tf.models.bmi import phase_two as second_phase
from rlm_tf.models.bmi.continuations import continuation
from rlm_tf.models.bmi.pair_scorer import PairScorer, built_discriminator
from rlm_tf.models.bmi.pairs import flat_pairs
from rlm_tf.models.bmi.phase_two import PHASES_TWO, PhaseTwo
from rlm_tf.models.bmi.pooling import POOLINGS, Pooling, pooled
from rlm_tf.models.bmi.scaled_gradient import unweighted_scores
from rlm_tf.models.bmi.two_optimizers import two_optimizers
from rlm_tf.models.language.wrapped_language_model import WrappedLanguageModel
from rlm_tf.objective_model.term import (
    Coefficient,
    Term,
    TermLoss,
    TermSpec,
    check_coefficient,
    coefficient_at,
)
from rlm_tf.objectives.mutual_information import jsd_proxy
from rlm_tf.objectives.raml import SCALES, Scale
from rlm_tf.seeds import Seeds

_LEAST_TEMPERATURE = float(np.finfo(np.float32).tiny)


@keras.saving.register_keras_serializable("rlm_tf")
class BootstrappedMutualInformation(WrappedLanguageModel):
    """Trains a language model on likelihood and mutual information of sentences.

    Cao and Xu (2019, arXiv 1905.11978), signs corrected. A discriminator D tells pairs
    (X, Y*) of neighbouring sentences from pairs (X, Y-) drawn apart, by features phi
    that the language model's layers have of each:

        Phase I   nll + weight * [SP(-D(X, Y*)) + mean SP(D(X, Y-))]            Eq. (6)
        Phase II  besides, raml_weight * sum_i w_i NLL(Y_i | X_i) / L_i         Eq. (16)
                  r = D(X, Y) - D(X, Y*),    w = softmax(r / temperature - ln G)

    Phase I trains language model and discriminator, from the first step to the last.
    Phase II, which begins when `phase` is 1 (`rlm_tf.training.SwitchPhase` sets it),
    raises the likelihood of sentences Y behind Y* that D finds better than they are
    likely to be drawn; Y is read from the state after X, and its gradient reaches X.
    Rewards are of one pass without dropout and without gradient, so that the
    discriminator learns nothing in Phase II, and r = 0 where Y is Y*. What the paper
    compares this with, `phase_two="rl"`, is self-critical policy gradient (Eq. 9) on
    sentences that the model says itself.

    It is trained on batches that `SentencePairs` or `SegmentPairs` give, as a transform
    of `rlm_tf.training.ResumableBatches`. Batches without pairs, `(tokens, start)`,
    evaluate the language model alone. Calling, evaluating and exporting give the
    wrapped model. The `.keras` file holds language model and discriminator, never the
    training text. As the authors' second run, Phase II may begin from such a file of
    Phase I:

        first = rlm_tf.load_model(path)
        model = BootstrappedMutualInformation(
            first.model, discriminator=first.discriminator, phase_two="raml"
        )
        model.set_phase(1)
        model.compile(...)

    Logs: `nll` and what else the wrapped model logs, `mutual_information` (the loss of
    Phase I: 2 ln 2 knows nothing), `pair_accuracy` (D+ > D-), `mine` (the bound of Eq.
    (4), in evaluation with pairs on held-out ones), and in Phase II `raml` (or `rl`,
    whose value means nothing), `reward` and `effective_sample_size`. A step's `raml`
    counts in an epoch by the sum of its relative weights.

    Args:
        model: Any language model of this library, or one in `InducedModelMatching`,
            whose terms stay; or a functional Keras model with `hidden_layers`.
        discriminator: None: `PairDiscriminator()`.
        weight: Of Phase I, a number or a schedule of the optimiser's step. A number
            multiplies the discriminator's gradient, too, as the authors have it; of a
            schedule that is the gradient of weight 1, so that a weight that falls does
            not leave the discriminator to its penalty.
        raml_weight: Of Phase II; None: `weight`. (The authors' code has two weights.)
        pooling: phi of a sentence, over its tokens: "max", "last" or "mean".
        phase_two: "raml" or "rl"; None: Phase I alone.
        temperature: beta of the rewards.
        scale: What a sentence's NLL is divided by: "sentence" (its length), "sum" (1),
            "batch" (all lengths, the authors' code).
        hidden_layers: Names of the layers whose outputs make phi, of a functional
            Keras model.
        clip_norm: Gradients of language model and discriminator are each clipped to
            this global norm, `math.inf`: not. None: the language model's to what the
            wrapped model has, both to the published 0.25 where nothing is said.
        loss_scale: See `ObjectiveModel`. None: what the wrapped model has.
        l2: Of the language model, see `ObjectiveModel`. None: what the wrapped model
            has.
        discriminator_l2: The same of the discriminator.
        end_id: Of "rl": the token that ends the sentences that the model says. None:
            they are as long as the pieces of the batch.
        **kwargs: Of `keras.Model`.

    Raises:
        ValueError: If an option is unknown or out of range, or the model is not causal
            or does not give the outputs of its hidden layers.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        discriminator: PairDiscriminator | None = None,
        weight: Coefficient = 0.1,
        raml_weight: Coefficient | None = None,
        pooling: Pooling = "max",
        phase_two: PhaseTwo | None = None,
        temperature: float = 1.0,
        scale: Scale = "sentence",
        hidden_layers: Sequence[str] = (),
        clip_norm: float | None = None,
        loss_scale: float | None = None,
        l2: float | None = None,
        discriminator_l2: float = 1e-6,
        end_id: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            model,
            hidden_layers=hidden_layers,
            clip_norm=clip_norm,
            loss_scale=loss_scale,
            l2=l2,
            **kwargs,
        )
        name = type(self).__name__
        if isinstance(model, BootstrappedMutualInformation):
            raise ValueError(
                f"{name}: `model` has BMI already; give the language model in it."
            )
        self.given_clip_norm = clip_norm
        check_coefficient(name, "weight", weight)
        if raml_weight is not None:
            check_coefficient(name, "raml_weight", raml_weight)
        check_option(name, "pooling", pooling, POOLINGS)
        if phase_two is not None:
            check_option(name, "phase_two", phase_two, PHASES_TWO)
        check_option(name, "scale", scale, SCALES)
        check_range(name, _LEAST_TEMPERATURE, math.inf, temperature=temperature)
        check_range(name, 0.0, math.inf, discriminator_l2=discriminator_l2)
        if end_id is not None:
            check_integer(name, "end_id", end_id, 0)
        self.weight = weight
        self.raml_weight = raml_weight
        self.pooling = pooling
        self.phase_two = phase_two
        self.temperature = temperature
        self.scale = scale
        self.discriminator_l2 = discriminator_l2
        self.end_id = end_id
        if phase_two == "rl" and not self.view.has_states:
            raise ValueError(
                f'{name}: `phase_two="rl"` lets the model say sentences in every '
                f"step, for which it needs states; {type(model).__name__} has none."
            )
        self.discriminator = built_discriminator(name, discriminator, model, self.view)
        # Not an attribute that Keras tracks: it has nothing of its own.
        self.scorer = PairScorer(self.view, self.discriminator, pooling)
        self.sample_seeds = Seeds(self.discriminator.seed, self).generator()
        # Whether the step that is traced has them.
        self._has_pairs = True
        self.accuracy_metric = declared(keras.metrics.Mean(name="pair_accuracy"), "up")
        self.mine_metric = declared(MineBound(name="mine"), "up")
        self.reward_metric, self.size_metric = (
            declared(keras.metrics.Mean(name=each), "up", only_training=True)
            for each in ("reward", "effective_sample_size")
        )
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the wrapped models have their weights."""

    def compile(
        self,
        optimizer: Any = "sgd",
        discriminator_optimizer: Any = None,
        **kwargs: Any,
    ) -> None:
        """Configures training as `keras.Model.compile`, with two optimisers.

        Args:
            optimizer: Of the language model; or a `DecoupledOptimizer` of the parts
                "model" and "discriminator", which clips as it says.
            discriminator_optimizer: None: Adam at rate 2e-4.
            **kwargs: Of `keras.Model.compile`.

        Raises:
            ValueError: If a `DecoupledOptimizer` is given beside an optimiser of the
                discriminator, or to a model whose `clip_norm` is another.
        """
        optimizer = two_optimizers(self, optimizer, discriminator_optimizer)
        super().compile(optimizer, **kwargs)
        self._build_optimizer()

    # === Declarations ===

    @property
    def term_specs(self) -> list[TermSpec]:
        specs = [*self.inner_specs, TermSpec("mutual_information", self.weight)]
        if self.phase_two is not None:
            weight = self.weight if self.raml_weight is None else self.raml_weight
            specs.append(TermSpec(self.phase_two, weight, phases=(1,), evaluated=False))
        return specs

    def set_phase(self, phase: int) -> None:
        """Begins a phase, 0 (I) or 1 (I + II); ValueError if there is none."""
        most = int(self.phase_two is not None)
        check_range(type(self).__name__, 0, most, phase=phase)
        super().set_phase(phase)

    @property
    def parts(self) -> Mapping[str, Sequence[Any]]:
        return {"model": [self.model], "discriminator": [self.discriminator]}

    @property
    def total_clip_norm(self) -> float | None:
        """None: the parts are clipped, each on its own."""
        return None

    def has_step_factor(self, variable: keras.Variable) -> bool:
        return not self._is_of_discriminator(variable)

    def l2_of(self, variable: keras.Variable) -> float:
        of_discriminator = self._is_of_discriminator(variable)
        return self.discriminator_l2 if of_discriminator else self.l2

    def _is_of_discriminator(self, variable: keras.Variable) -> bool:
        return any(variable is own for own in self.discriminator.trainable_variables)

    # === Computation ===

    def window_of(self, x: Any) -> Any:
        return _window_and_pairs(x)[0]

    def features(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns phi of pieces of text, each read from zero states.

        Args:
            tokens: int `[R, L]`, padded with -1.
            training: Whether dropout acts.

        Returns:
            `[R, F]`.
        """
        return self.scorer.features(tokens, training)

    def pair_scores(
        self, first: tf.Tensor, second: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Returns D of pairs of pieces, `[R]`; arguments as those of `features`."""
        return self.scorer.scores(first, second, training)

    # === Objective ===

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> Mapping[str, TermLoss] | list[Term]:
        window, given = _window_and_pairs(x)
        self._has_pairs = given is not None
        terms = self.language_terms(window, y, sample_weight, training)
        if given is None:
            if training:
                raise ValueError(
                    f"{type(self).__name__}: a batch without pairs; give `fit()` those "
                    "of `ResumableBatches(batches, transform=SentencePairs(...))`."
                )
            specs = {spec.name: spec for spec in self.term_specs}
            return [
                self._term(specs[name], loss, tf.constant(0), training=False)
                for name, loss in terms.items()
            ]
        pairs = flat_pairs(type(self).__name__, given, self.vocabulary_size)
        if self._in_phase_two(training):
            return {**terms, **self._phase_two(pairs, training)}
        return {**terms, "mutual_information": self._proxy(pairs, training)}

    def _proxy(
        self, pairs: PairBatch, training: bool, x_features: tf.Tensor | None = None
    ) -> TermLoss:
        """Returns Phase I's loss of each pair."""
        pieces = [pairs.second[:, tf.newaxis], pairs.negatives]
        if x_features is None:
            pieces.insert(0, pairs.first[:, tf.newaxis])
        # Pair by pair: rows of replicas, one after the other, are those of all.
        stacked = tf.concat(pieces, axis=1)
        number = stacked.shape[1]
        rows = tf.reshape(stacked, [-1, stacked.shape[2]])
        found = self.features(rows, training)
        found = tf.reshape(found, [-1, number, found.shape[-1]])
        if x_features is None:
            x_features, found = found[:, 0], found[:, 1:]
        others = found.shape[1]
        given = (
            tf.repeat(x_features, others, axis=0),
            tf.reshape(found, [-1, found.shape[-1]]),
        )
        if training and callable(self.weight):
            weight = coefficient_at(self.weight, self.optimizer.iterations)
            scores = unweighted_scores(self.discriminator, given, weight)
        else:
            scores = self.discriminator(given, training=training)
        scores = tf.reshape(scores, [-1, others])
        joint, marginal = scores[:, 0], scores[:, 1:]
        loss, extra = jsd_proxy(joint, marginal)
        self.accuracy_metric.update_state(extra.pair_accuracy, pairs.weights)
        self.mine_metric.update_state(joint, marginal, pairs.weights)
        return TermLoss(loss, pairs.weights)

    def _phase_two(self, pairs: PairBatch, training: bool) -> dict[str, TermLoss]:
        """Returns the losses of both phases, which share a pass over X."""
        if self.phase_two == "rl":
            term, rewards = second_phase.self_critical(self, pairs)
            self.reward_metric.update_state(rewards, pairs.weights)
            return {"rl": term, "mutual_information": self._proxy(pairs, training)}
        rows = continuation(pairs.first, pairs.proposal)
        hidden, outputs = self.view.read(rows.tokens, training)
        nll = tf.reduce_sum(self.scorer.nll(rows, outputs), axis=1)
        rewards = second_phase.rewards(self, pairs)
        weights, size = second_phase.weighted(
            rewards, pairs, temperature=self.temperature
        )
        self.reward_metric.update_state(rewards, pairs.weights)
        self.size_metric.update_state(size)
        loss = second_phase.scaled(self, nll, rows.lengths, pairs.weights)
        x_features = pooled(hidden, rows.of_first, self.pooling)
        return {
            "raml": TermLoss(loss, weights),
            "mutual_information": self._proxy(pairs, training, x_features),
        }

    # === Metrics ===

    def get_metrics_result(self) -> dict[str, Any]:
        # What was traced last may be of other batches.
        weight = tf.convert_to_tensor(self.mine_metric.joint_weight)
        self._has_pairs = bool(float(weight))
        return super().get_metrics_result()

    def _logged(self, training: bool) -> list[keras.metrics.Metric]:
        silent = [] if self._has_pairs else [self.mine_metric, self.accuracy_metric]
        if not self._in_phase_two(training):
            silent += [self.reward_metric, self.size_metric]
        elif self.phase_two == "rl":
            silent.append(self.size_metric)
        found = super()._logged(training)
        return [m for m in found if not any(m is other for other in silent)]

    def _in_phase_two(self, training: bool) -> bool:
        return self.phase_two is not None and self.term_counts(self.phase_two, training)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "clip_norm": self.given_clip_norm,
            "model": serialize(self.model),
            "discriminator": serialize(self.discriminator),
            "weight": serialize(self.weight),
            "raml_weight": serialize(self.raml_weight),
            "pooling": self.pooling,
            "phase_two": self.phase_two,
            "temperature": self.temperature,
            "scale": self.scale,
            "hidden_layers": self.hidden_layers,
            "discriminator_l2": self.discriminator_l2,
            "end_id": self.end_id,
        }


def _window_and_pairs(x: Any) -> tuple[Any, PairBatch | None]:
    """Returns the window of a batch, and its pairs if it has some."""
    if isinstance(x, tuple | list) and len(x) == 3:
        return tuple(x[:2]), PairBatch(*x[2])
    return x, None

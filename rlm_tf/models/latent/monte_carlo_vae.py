"""Latent-variable models trained with mutual-information constrained objectives."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.layers.basic.batch_average import BatchAverage
from rlm_tf.layers.latent.latents import Latents
from rlm_tf.metrics.declared import Direction, declared
from rlm_tf.models.latent.latent_gradients import (
    LatentSamples,
    Parameters,
    sample_cotangents,
    sample_gradients,
)
from rlm_tf.models.latent.latent_variable_model import (
    LatentVariableModel,
    check_latent_size,
    check_layers,
    checked_counts,
    checked_number,
    log_likelihood,
)
from rlm_tf.objective_model.term import TermLoss, TermSpec
from rlm_tf.objectives.gradient_estimators import (
    REPARAMETERISED,
    SCORE_FUNCTION,
    Estimator,
)
from rlm_tf.objectives.monte_carlo import MonteCarloExtra
from rlm_tf.objectives.monte_carlo_samples import check_numbers
from rlm_tf.objectives.monte_carlo_terms import Grouping, Objective, decompose
from rlm_tf.objectives.score_signals import Baseline
from rlm_tf.typing import Gradient

_DIRECTIONS: dict[str, Direction] = {
    "bound": "down",
    "kl": "up",
    "representational_kl": "up",
}

# The objectives that use an option, and its value elsewhere.
_USES: dict[str, tuple[tuple[str, ...], float]] = {
    "lambda_": (("kl", "renyi"), 0.0),
    "alpha": (("alpha_iwae", "renyi", "power"), 1.0),
}

_BASELINES = {
    "reinforce": ("moving_average",),
    "vimco": ("swap_in", "leave_one_out"),
}


@keras.saving.register_keras_serializable("rlm_tf")
class MonteCarloVAE(LatentVariableModel):
    """A model p(x, z) = p(z) p(x|z) and a proposal q(z|x) (Melis 2023, chapter 5).

    It maximises `ln p(x) + lambda KL(p(z|x) || p(z))`, estimated from K samples of
    q(z|x). The encoder runs once a step, the decoder once forward on K samples of every
    example, and backward once, twice with DReG.

    `fit()` takes x, and weights `[B]` as `sample_weight`, or batches (x, None, weights)
    of a dataset. Metrics are `objective` (minus the objective, what is minimised),
    `bound` (minus the evidence S), `kl` (the estimate of KL(p(z|x) || p(z))) and
    `representational_kl` (of KL(q(z|x) || p(z))), nats an example, means over batches.
    To callbacks with `mode="auto"` more of the latter two is better, as it is to the
    objective.

    Args:
        encoder: Layer or model, x to features `[B, F]`; F is its `output_size`. Neither
            it nor the decoder may `add_loss`, or regularise activities.
        latents: Posterior family and prior.
        decoder: Layer or model; called on latents `[K, B, ...]` and x (a functional
            model on the list of both) it gives `ln p(x|z)` `[K, B]`. Examples and
            samples must not mix in it.
        objective: `iwae`, `alpha_iwae`, `u_hat`, `kl`, `renyi` or `power`.
        estimator: Of the gradient by the parameters of q: `reparameterised`, `stl` and
            `dreg` for reparameterised latents, `reinforce` and `vimco` for all. `elbo`:
            the KL to the prior is computed, not sampled; see
            `rlm_tf.objectives.elbo.elbo_weights`.
        num_samples: K, or (N, M): N samples for the evidence, M for the divergence.
        lambda_: Weight of the mutual information.
        alpha: Of `alpha_iwae`, `renyi` and `power`.
        grouping: With (N, M), see `rlm_tf.objectives.monte_carlo.kl_objective`.
        baseline: Of `vimco` `swap_in` (or None) or `leave_one_out`, see
            `rlm_tf.objectives.gradient_estimators.cotangents`. Of `reinforce` None, as
            published, or `moving_average`: of the objective over the batches before.
        seed: Of the samples. Evaluation has a seed of its own that follows from it: it
            gives the same again, and validation leaves training as it is.
        **kwargs: Of `ObjectiveModel`.

    Raises:
        ValueError: If options do not fit each other.
    """

    part_names = ("encoder", "latents", "decoder")

    def __init__(
        self,
        encoder: keras.layers.Layer,
        latents: Latents,
        decoder: keras.layers.Layer,
        *,
        objective: Objective = "kl",
        estimator: Estimator | str = "dreg",
        num_samples: int | Sequence[int] = 16,
        lambda_: float = 0.0,
        alpha: float = 1.0,
        grouping: Grouping = "difference",
        baseline: Baseline | Literal["moving_average"] | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_layers("MonteCarloVAE", encoder=encoder, decoder=decoder)
        self.encoder = encoder
        self.latents = latents
        self.decoder = decoder
        self.objective = objective
        self.estimator = estimator
        self.num_samples = checked_counts("MonteCarloVAE", "num_samples", num_samples)
        self.lambda_ = checked_number("MonteCarloVAE", "lambda_", lambda_)
        self.alpha = checked_number("MonteCarloVAE", "alpha", alpha)
        self.grouping = grouping
        self.baseline = baseline
        self.seed = seed
        _check_options(self)
        if baseline == "moving_average":
            self.moving_average = BatchAverage(name="moving_average")
        self._build_latents()
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.sample_metrics = {
            name: declared(keras.metrics.Mean(name=name), direction)
            for name, direction in _DIRECTIONS.items()
        }

    def _build_latents(self) -> None:
        """Builds the latents where the encoder says what it gives.

        A model that is built already trains on replicas; building it there, Keras would
        turn ids into numbers.
        """
        width = getattr(self.encoder, "output_size", None)
        if width is None and self.encoder.built:
            width = getattr(self.encoder, "output_shape", (None,))[-1]
        if width is not None and not self.latents.built:
            self.latents.build((None, width))
        self.built = self._is_whole()

    def _is_whole(self) -> bool:
        return all(getattr(self, part).built for part in self.part_names)

    @property
    def most_samples(self) -> int:
        """How many samples of an example a step draws."""
        counts = self.num_samples
        return counts if isinstance(counts, int) else max(counts)

    def current_baseline(self) -> Any:
        """Returns the baseline of a step, as `cotangents` takes it."""
        if self.baseline == "moving_average":
            return self.moving_average.value()
        return self.baseline

    def elbo_options(self) -> dict[str, Any]:
        """Returns the options of `rlm_tf.objectives.elbo.elbo`."""
        names = ("objective", "alpha", "lambda_")
        return {name: getattr(self, name) for name in names}

    def objective_options(self) -> dict[str, Any]:
        """Returns the options of the objective by name."""
        counts = self.num_samples
        return {
            "alpha": self.alpha,
            "lambda_": self.lambda_,
            "num_samples": None if isinstance(counts, int) else counts,
            "grouping": self.grouping,
        }

    # === Computation ===

    def call(self, x: Any, training: bool = False) -> Parameters:
        """Returns the parameters of q(z|x), each `[B, ...]`."""
        features = self.encoder(x, training=training)
        check_shapes("MonteCarloVAE", features_of_encoder=(features, "B F"))
        parameters = self.latents(features)
        self.remember_input(x)
        if not self.decoder.built:
            # Whoever builds a model by calling it wants all of its weights.
            self._run_decoder(parameters, x)
        return parameters

    def run_parts(self, x: Any) -> None:
        self._run_decoder(self(x), x)

    def _run_decoder(self, parameters: Parameters, x: Any) -> None:
        rows = tf.shape(tf.nest.flatten(parameters)[0])[0]
        self.decode(tf.zeros([1, rows, *self.latents.event_shape]), x)

    def decode(self, z: tf.Tensor, x: Any, training: bool = False) -> tf.Tensor:
        """Returns `ln p(x|z)` `[K, B]` for latents `[K, B, ...]`, nats."""
        return log_likelihood("MonteCarloVAE", self.decoder, z, x, training)

    def draw(self, parameters: Parameters, num_samples: int) -> tf.Tensor:
        """Returns latents `[K, B, ...]` from q(z|x)."""
        return self.latents.sample(parameters, num_samples, self.seed_generator)

    def analytic_kl(self, parameters: Parameters) -> tf.Tensor:
        """Returns KL(q(z|x) || p(z)), `[B]`, nats."""
        return self.latents.posterior(parameters).kl_divergence(self.latents.prior())

    def sample(
        self, x: Any, num_samples: int, parameters: Parameters | None = None
    ) -> LatentSamples:
        """Draws latents from q(z|x) and scores them, without dropout.

        Draws come from the generator of training, which moves on, but inside of
        `evaluation_draws`.

        Args:
            x: A batch.
            num_samples: K.
            parameters: Of q(z|x), where they are known already.
        """
        if parameters is None:
            parameters = self(x)
        z = self.draw(parameters, num_samples)
        return LatentSamples(
            z,
            self.decode(z, x),
            self.latents.prior().log_prob(z),
            self.latents.posterior(parameters).log_prob(z),
        )

    # === Evaluation ===

    @contextlib.contextmanager
    def evaluation_draws(self) -> Iterator[None]:
        """Draws the latents of evaluation, the same each time it is entered.

        In the end the generator of training is where it was.
        """
        state = self.seed_generator.state
        kept = np.array(state)
        own = np.random.default_rng(self.seed).integers(2**31, size=kept.shape)
        state.assign(own.astype(kept.dtype))
        try:
            yield
        finally:
            state.assign(kept)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.evaluate`; the same data give the same again."""
        with self.evaluation_draws():
            return super().evaluate(*args, **kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.test_on_batch`, with the draws of `evaluate`."""
        with self.evaluation_draws():
            return super().test_on_batch(*args, **kwargs)

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("objective", brings_gradient=True)]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        del y  # There is nothing but x.
        if not self._is_whole():
            self(x)
            # Nobody learns from this pass.
            self._clear_losses()
        weights = self.row_weights(x, sample_weight)
        if training:
            gradient = functools.partial(self._loss_and_gradient, x, weights)
            return {"objective": TermLoss(None, weights, gradient)}
        parameters = self(x)
        samples = self.sample(x, self.most_samples, parameters)
        kl = self.analytic_kl(parameters) if self.estimator == "elbo" else None
        found = sample_cotangents(self, samples, kl)
        self._update_sample_metrics(found.extra, weights)
        return {"objective": TermLoss(-found.objective, weights)}

    def _loss_and_gradient(
        self,
        x: Any,
        weights: tf.Tensor,
        variables: Sequence[Any],
        scale: tf.Tensor,
    ) -> tuple[tf.Tensor, list[Gradient]]:
        found, gradients = sample_gradients(self, x, variables, scale)
        if self.baseline == "moving_average":
            # After the step: a baseline must not know the samples it is for.
            self.moving_average.update(found.objective, weights)
        self._update_sample_metrics(found.extra, weights)
        return -found.objective, gradients

    def _update_sample_metrics(
        self, extra: MonteCarloExtra, weights: tf.Tensor
    ) -> None:
        for name, values in (
            ("bound", -extra.log_evidence),
            ("kl", extra.kl_divergence),
            ("representational_kl", extra.representational_kl),
        ):
            # Rows without weight may hold anything, infinity included.
            counted = tf.where(weights > 0, values, tf.zeros_like(values))
            self.sample_metrics[name].update_state(counted, sample_weight=weights)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        counts = self.num_samples
        config.update(
            objective=self.objective,
            estimator=self.estimator,
            num_samples=counts if isinstance(counts, int) else list(counts),
            lambda_=self.lambda_,
            alpha=self.alpha,
            grouping=self.grouping,
            baseline=self.baseline,
            seed=self.seed,
        )
        return config


# === Checks ===


def _check_options(model: MonteCarloVAE) -> None:
    """Raises ValueError if options do not fit each other or the latents."""
    name = type(model).__name__
    if not isinstance(model.latents, Latents):
        raise ValueError(
            f"{name}: `latents` must be an rlm_tf.layers.Latents, found "
            f"{type(model.latents).__name__}."
        )
    check_latent_size(name, model.decoder, "latents", model.latents.event_shape)
    known = ("elbo", *REPARAMETERISED, *SCORE_FUNCTION)
    if model.estimator not in known:
        raise ValueError(
            f"{name}: `estimator` must be one of {', '.join(known)}, found "
            f"{model.estimator!r}."
        )
    check_numbers(name, model.alpha, model.lambda_)
    decompose(name, model.objective, **model.objective_options())
    if model.baseline not in (None, *_BASELINES.get(model.estimator, ())):
        own = [repr(b) for b in _BASELINES.get(model.estimator, ())]
        raise ValueError(
            f"{name}: `baseline` of {model.estimator!r} must be "
            f"{' or '.join(['None', *own])}, found {model.baseline!r}."
        )
    for option, (objectives, idle) in _USES.items():
        found = getattr(model, option)
        if model.objective not in objectives and found != idle:
            raise ValueError(
                f"{name}: `{option}` is of the objectives {', '.join(objectives)}; "
                f"found {found} with {model.objective!r}."
            )
    differentiates = model.estimator not in SCORE_FUNCTION
    if differentiates and not model.latents.is_reparameterised:
        raise ValueError(
            f"{name}: `estimator={model.estimator!r}` differentiates samples, which "
            f"{type(model.latents).__name__} cannot; use reinforce or vimco."
        )
    if model.estimator == "vimco" and model.most_samples == 1:
        raise ValueError(
            f"{name}: VIMCO with one sample has no baseline; use "
            "`estimator='reinforce'`."
        )
    one_sample = not isinstance(model.num_samples, int) and min(model.num_samples) == 1
    if model.estimator == "vimco" and model.baseline == "leave_one_out" and one_sample:
        raise ValueError(
            f"{name}: `baseline='leave_one_out'` needs two samples in every term, "
            f"found {model.num_samples}."
        )
    if model.estimator == "elbo" and not isinstance(model.num_samples, int):
        raise ValueError(
            f"{name}: `estimator='elbo'` has one number of samples, found "
            f"{model.num_samples}."
        )

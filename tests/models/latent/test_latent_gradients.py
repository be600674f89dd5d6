"""Gradients of MonteCarloVAE, put together in other ways."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import NormalLatents, SymbolDecoder, SymbolEncoder
from rlm_tf.models import MonteCarloVAE
from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.gradient_estimators import cotangents
from tests.models.latent.vae_fixtures import X, symbol_model

# A few steps each: tracing graphs would take longer.
pytestmark = pytest.mark.eager

_ESTIMATORS = ("elbo", "reparameterised", "stl", "dreg", "reinforce", "vimco")
_WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0], np.float32)
# Two, where each has a tape of its own.
_ROWS = X[:2]


def _moved(model: MonteCarloVAE, batch) -> list[np.ndarray]:
    """What a step of gradient descent of rate 1 takes from the weights."""
    model(batch[0] if isinstance(batch, tuple) else batch)
    model.compile(keras.optimizers.SGD(1.0))
    before = [v.numpy() for v in model.trainable_variables]
    model.fit(tf.data.Dataset.from_tensors(batch), verbose=0)
    after = [v.numpy() for v in model.trainable_variables]
    return [b - a for a, b in zip(after, before, strict=True)]


# === Gradients ===


@pytest.mark.parametrize("estimator", _ESTIMATORS)
@pytest.mark.parametrize(
    ("objective", "alpha", "prior"),
    [("kl", 1.0, False), ("renyi", 1.7, True), ("power", 1.7, False)],
)
def test_gradient_sample_by_sample(estimator, objective, alpha, prior):
    """One tape a sample and way, and sums in NumPy, for the draws of the step."""
    options = {"objective": objective, "alpha": alpha, "prior": prior}
    found = _moved(symbol_model(estimator, **options), (_ROWS, None, _WEIGHTS[:2]))
    model = symbol_model(estimator, **options)
    parameters = model(_ROWS)
    draws = model.draw(parameters, 3)
    variables = model.trainable_variables
    weights = _WEIGHTS[:2] / _WEIGHTS[:2].sum()

    def tables(z):
        posterior = model.latents.posterior(parameters)
        return (
            model.decoder(z, _ROWS),
            model.latents.prior().log_prob(z),
            posterior.log_prob(z),
        )

    if estimator == "elbo":
        beta = 1 / alpha if objective == "power" else 0.7

        def loss(k, b):
            model.seed_generator.state.assign(state)
            parameters = model(_ROWS)
            z = model.draw(parameters, 3)
            kl = model.latents.posterior(parameters).kl_divergence(
                model.latents.prior()
            )
            return -(model.decoder(z, _ROWS)[k, b] - beta * kl[b]) / 3

        state = keras.random.SeedGenerator(4).state.numpy()
        expected = _sum_of_gradients(loss, weights, variables)
    else:
        factors = cotangents(
            *tables(draws),
            objective=objective,
            estimator=estimator,
            alpha=alpha,
            lambda_=0.3,
        )
        state = keras.random.SeedGenerator(4).state.numpy()

        def loss(k, b):
            model.seed_generator.state.assign(state)
            parameters = model(_ROWS)
            z = model.draw(parameters, 3)
            fixed = tf.constant(z.numpy())
            held = tf.nest.map_structure(tf.stop_gradient, parameters)
            own = model.latents.posterior(parameters).log_prob(fixed)
            total = factors.log_p_x_given_z[k, b] * model.decoder(fixed, _ROWS)[k, b]
            total += factors.log_p_z[k, b] * model.latents.prior().log_prob(fixed)[k, b]
            if factors.score is not None:
                total += factors.score[k, b] * own[k, b]
            if factors.path_log_p_z is not None:
                with tf.GradientTape() as tape:
                    tape.watch(fixed)
                    ways = factors.path_log_p_x_given_z * model.decoder(fixed, _ROWS)
                    ways += factors.path_log_p_z * model.latents.prior().log_prob(fixed)
                    ways += factors.path_log_q_z * model.latents.posterior(
                        held
                    ).log_prob(fixed)
                    way = ways[k, b]
                to_z = tf.stop_gradient(tape.gradient(way, fixed))
                total += tf.reduce_sum(to_z * z)
            return -total

        expected = _sum_of_gradients(loss, weights, variables)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, atol=3e-6)


def _sum_of_gradients(loss, weights, variables):
    totals = [np.zeros(v.shape, np.float64) for v in variables]
    for k in range(3):
        for b in range(len(weights)):
            with tf.GradientTape() as tape:
                value = weights[b] * loss(k, b)
            for total, gradient in zip(
                totals, tape.gradient(value, variables), strict=True
            ):
                if gradient is not None:
                    total += gradient.numpy()
    return totals


@pytest.mark.parametrize("objective", ["iwae", "kl", "renyi"])
def test_reparameterised_is_the_gradient_of_the_objective(objective):
    options = {"objective": objective, "alpha": 1.7 if objective == "renyi" else 1.0}
    found = _moved(symbol_model("reparameterised", **options), X)
    model = symbol_model("reparameterised", **options)
    model(X)
    function, own = {
        "iwae": (monte_carlo.iwae, {}),
        "kl": (monte_carlo.kl_objective, {"lambda_": 0.3}),
        "renyi": (monte_carlo.renyi_objective, {"lambda_": 0.3, "alpha": 1.7}),
    }[objective]
    with tf.GradientTape() as tape:
        parameters = model(X)
        z = model.draw(parameters, 3)
        loss = function(
            model.decoder(z, X),
            model.latents.prior().log_prob(z),
            model.latents.posterior(parameters).log_prob(z),
            **own,
        ).loss
        loss = tf.reduce_mean(loss)
    expected = tape.gradient(loss, model.trainable_variables)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)


class _Counting(keras.layers.Layer):
    """Counts the rows that a layer gets."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.rows = []
        self.built = layer.built

    def call(self, *inputs, training=False):
        self.rows.append(int(np.prod(inputs[0].shape[: len(inputs)])))
        return self.layer(*inputs, training=training)


@pytest.mark.parametrize("estimator", ["dreg", "vimco"])
def test_a_step_encodes_once_and_decodes_each_sample_once(estimator):
    model = symbol_model(estimator, num_samples=16)
    model.encoder = _Counting(model.encoder)
    model.decoder = _Counting(model.decoder)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    model.fit(tf.data.Dataset.from_tensors(X), verbose=0)
    assert model.encoder.rows[-1:] == [4] and model.decoder.rows[-1:] == [64]
    calls = len(model.encoder.rows), len(model.decoder.rows)
    model.fit(tf.data.Dataset.from_tensors(X), verbose=0)
    assert (len(model.encoder.rows), len(model.decoder.rows)) == (
        calls[0] + 1,
        calls[1] + 1,
    )


# === Losses that layers add ===


class _AddingEncoder(SymbolEncoder):
    def call(self, symbols, training=False):
        features = super().call(symbols)
        self.add_loss(tf.reduce_sum(features**2))
        return features


@pytest.mark.graph
@pytest.mark.parametrize("part", ["encoder", "decoder"])
@pytest.mark.parametrize("eagerly", [True, False])
def test_a_loss_that_a_part_adds_is_refused(part, eagerly):
    decoder = SymbolDecoder(7, 4, 5, num_layers=1)
    decoder.activity_regularizer = keras.regularizers.L2(0.1)
    parts = {
        "encoder": _AddingEncoder(7, 5) if part == "encoder" else SymbolEncoder(7, 5),
        "decoder": decoder if part == "decoder" else SymbolDecoder(7, 4, 5),
    }
    model = MonteCarloVAE(latents=NormalLatents(4), num_samples=2, **parts)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=eagerly)
    # What an earlier call has left is not what the step adds.
    model(X)
    kind = type(parts[part]).__name__
    message = rf"MonteCarloVAE: layer `{parts[part].name}` \({kind}\) adds a loss"
    with pytest.raises(ValueError, match=message):
        model.train_on_batch(X)

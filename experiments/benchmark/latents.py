"""Training steps of latent-variable models of symbols: ours and PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.benchmark.lstm import product_peak
from experiments.benchmark.preset import Preset
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step, train_function_step
from experiments.kit.vae_config import VaeConfig
from experiments.kit.vae_model import build_model
from rlm_tf.models import MonteCarloVAE

_UNITS, _LAMBDA = 128, 0.2
_TORCH = "PyTorch"


def measure(preset: Preset, rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times steps of VIMCO and DReG with the KL objective and K samples.

    The peer is the same model in PyTorch, written in the obvious way: logits, their
    log-softmax, the label's entry of it. Beside it the decoder alone, forward and
    backward for as many samples, and a whole step of one sample. The floor is the time
    of the products with the softmax's kernel at the machine's peak.
    """
    samples = preset.latent_samples
    lines, numbers = [], {}
    for estimator in ("vimco", "dreg"):
        timings, peaks = Timings(), []
        one = "reinforce" if estimator == "vimco" else estimator
        for seed in seeds:
            data = _symbols(preset, seed)
            steps = {
                "ours": _our_step(preset, estimator, samples, data, seed),
                "one sample": _our_step(preset, one, 1, data, seed),
                "decoder": _decoder_step(preset, estimator, data, seed),
            }
            torch_step = _torch_step(preset, estimator, data, seed)
            if torch_step is not None:
                steps[_TORCH] = torch_step
            peaks.append(product_peak(preset.peak_size))
            timings.run(steps, rounds)
            peaks.append(product_peak(preset.peak_size))
        what = (
            f"{estimator.upper()}-{samples} step, {preset.vocabulary_size:,} symbols, "
            f"{preset.latent_batch} examples"
        )
        if _TORCH in timings.seconds:
            peer, ratio = timings.text(_TORCH), timings.ratio("ours", _TORCH)
            lines.append(
                Line(
                    what, timings.text("ours"), f"{_TORCH}: {peer}", ratio, "at most 1"
                )
            )
        else:
            lines.append(Line(what, timings.text("ours"), f"{_TORCH}: not installed"))
        lines.append(
            Line(
                what,
                timings.text("ours"),
                f"its decoder alone: {timings.text('decoder')}",
                timings.ratio("ours", "decoder"),
                "at most 1.5" if estimator == "vimco" else "at most 2",
            )
        )
        lines.append(
            Line(
                what,
                timings.text("ours"),
                f"one sample ({one}): {timings.text('one sample')}",
                timings.ratio("ours", "one sample"),
            )
        )
        operations = step_operations(preset)
        floor = operations / max(peaks)
        share = floor / timings.median("ours")
        lines.append(
            Line(
                f"{what}, share of the product peak, {max(peaks) / 1e9:,.0f} GFLOP/s",
                f"{share:.0%}",
            )
        )
        numbers[estimator] = {
            "times": timings.numbers(),
            "step_flop": operations,
            "peak_flop_per_s": max(peaks),
            "share_of_peak": share,
        }
    return Row(lines, numbers)


def step_operations(preset: Preset) -> int:
    """Returns the operations of the products with the softmax's kernel, `2 K B H V`.

    One is forward and two are backward. DReG goes to the latents once more, with other
    factors for the rows of the same product, which TensorFlow computes once.
    """
    rows = preset.latent_samples * preset.latent_batch
    return 2 * 3 * rows * _UNITS * preset.vocabulary_size


def _symbols(preset: Preset, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(preset.vocabulary_size, size=preset.latent_batch).astype(np.int32)
        for _ in range(4)
    ]


def latent_model(
    preset: Preset, estimator: str, samples: int, seed: int
) -> MonteCarloVAE:
    """Returns the model of an estimator, built, with the KL objective."""
    discrete = estimator in ("vimco", "reinforce")
    config = VaeConfig(
        num_symbols=preset.vocabulary_size,
        latents="categorical" if discrete else "normal",
        units=_UNITS,
        estimator=estimator,
        num_samples=samples,
        lambda_=_LAMBDA,
        seed=seed,
    )
    model = build_model(config, preset.vocabulary_size)
    assert isinstance(model, MonteCarloVAE)
    return model


def _our_step(
    preset: Preset, estimator: str, samples: int, data: list[np.ndarray], seed: int
) -> Step:
    model = latent_model(preset, estimator, samples, seed)
    model.compile(keras.optimizers.Adam(1e-3, beta_1=0.0, epsilon=1e-8))
    return train_function_step(model, [(tf.constant(x),) for x in data])


def decoder_alone(model: MonteCarloVAE, samples: int) -> Callable[[Any], Any]:
    """Returns a function of a batch that runs the decoder forward and backward."""
    weights = model.decoder.trainable_variables

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def run(x: tf.Tensor) -> list[tf.Tensor]:
        latents = tf.ones([samples, tf.shape(x)[0], *model.latents.event_shape])
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(model.decoder(latents, x, training=True))
        return tape.gradient(total, weights)

    return run


def _decoder_step(
    preset: Preset, estimator: str, data: list[np.ndarray], seed: int
) -> Step:
    model = latent_model(preset, estimator, preset.latent_samples, seed)
    run = decoder_alone(model, preset.latent_samples)
    batches = itertools.cycle([tf.constant(x) for x in data])
    return lambda: run(next(batches))[-1].numpy()


def _torch_step(
    preset: Preset, estimator: str, data: list[np.ndarray], seed: int
) -> Step | None:
    """Returns a step of the same model in PyTorch; None where that is missing."""
    try:
        from experiments.benchmark import torch_vae
    except ImportError:
        return None
    return torch_vae.training_step(
        preset.vocabulary_size,
        _UNITS,
        data,
        seed,
        preset.latent_samples,
        estimator == "vimco",
        _LAMBDA,
    )

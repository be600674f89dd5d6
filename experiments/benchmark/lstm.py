"""One training step of an LSTM language model: ours, Keras' and PyTorch's."""

from __future__ import annotations

import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.benchmark.preset import Preset
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step, train_function_step
from rlm_tf.models import RecurrentLanguageModel

_LAYERS, _LEARNING_RATE, _CLIP_NORM = 2, 1.0, 5.0
_KERAS, _XLA, _TORCH = "keras.layers.LSTM", "keras.layers.LSTM, XLA", "torch.nn.LSTM"
_TORCH_COMPILED = f"{_TORCH}, torch.compile"
# What a step may take of PyTorch's time, by width.
TARGETS = {200: "at most 0.75", 650: "at most 0.85"}


def measure(preset: Preset, width: int, rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times the steps in turn, and the machine's matrix products beside them.

    All train 2 layers with SGD and a limit on the gradient's global norm, without
    dropout, on the same uniformly drawn words; ours and PyTorch's carry the state.
    Every step is what the library's user gets: ours and Keras' run what `fit()`
    runs.
    """
    timings = Timings()
    peaks = []
    names: list[str] = []
    for seed in seeds:
        data = random_words(preset, seed)
        steps = {
            "ours": our_step(preset, width, data, seed),
            _KERAS: keras_step(preset, width, data, seed, jit_compile=False),
            _XLA: keras_step(preset, width, data, seed, jit_compile=True),
        }
        # Compiling takes a quarter of a minute.
        peers = [_TORCH, _TORCH_COMPILED] if width in TARGETS else [_TORCH]
        for name in peers:
            compiled = name == _TORCH_COMPILED
            torch_step = torch_lstm_step(preset, width, data, seed, compiled=compiled)
            if torch_step is not None:
                steps[name] = torch_step
        names = [*steps]
        peaks.append(product_peak(preset.peak_size))
        timings.run(steps, rounds)
        peaks.append(product_peak(preset.peak_size))
    peak, operations = max(peaks), step_operations(preset, width)
    shares = {name: operations / timings.median(name) / peak for name in names}
    what = f"LSTM training step, {_LAYERS} x {width}"
    lines = [
        Line(
            what,
            timings.text("ours"),
            f"{peer}: {timings.text(peer)}",
            timings.ratio("ours", peer),
            TARGETS.get(width, "at most 1") if peer == _TORCH else "",
        )
        for peer in names[1:]
    ]
    if _TORCH not in names:
        lines.append(Line(what, timings.text("ours"), f"{_TORCH}: not installed"))
    others = [f"{name}: {shares[name]:.0%}" for name in names[1:]]
    what = f"{what}, share of the product peak, {peak / 1e9:,.0f} GFLOP/s"
    lines.append(Line(what, f"{shares['ours']:.0%}", "; ".join(others)))
    return Row(
        lines,
        {
            "times": timings.numbers(),
            "peak_flop_per_s": peak,
            "step_flop": operations,
            "step_flop_formula": "6 B T (8 L H^2 + H V)",
            "share_of_peak": shares,
        },
    )


def step_operations(preset: Preset, width: int) -> int:
    """Returns the floating-point operations of the matrix products of one step.

        6 B T (8 L H^2 + H V)

    A product of `[n, a]` with `[a, b]` takes `2 n a b`; the backward pass has two
    products for each of the forward pass. A layer of H units maps `2 H` values (input
    and state) to `4 H`; the softmax maps H to V.
    """
    positions = preset.batch_size * preset.window
    weights = 8 * _LAYERS * width**2 + width * preset.vocabulary_size
    return 6 * positions * weights


def product_peak(size: int, repetitions: int = 5) -> float:
    """Returns the best float32 rate of a square matrix product, FLOP/s."""
    matrix = tf.random.stateless_normal([size, size], seed=[0, 0])
    product = tf.function(lambda: tf.matmul(matrix, matrix))
    product()
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        product()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def random_words(
    preset: Preset, seed: int, sizes: tuple[int, int] | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns batches of uniformly drawn words, inputs and next words.

    Args:
        preset: Gives the size of the vocabulary.
        seed: Of the draws.
        sizes: Rows and time steps; None: the preset's.
    """
    rng = np.random.default_rng(seed)
    batch_size, window = sizes or (preset.batch_size, preset.window)
    shape = (batch_size, window + 1)
    blocks = [rng.integers(preset.vocabulary_size, size=shape) for _ in range(4)]
    return [(block[:, :-1], block[:, 1:]) for block in blocks]


# === Steps ===


def our_step(preset: Preset, width: int, data: list[Any], seed: int) -> Step:
    """Returns a step of `RecurrentLanguageModel`."""
    model = RecurrentLanguageModel(
        preset.vocabulary_size, width, _LAYERS, clip_norm=_CLIP_NORM, seed=seed
    )
    model.compile(keras.optimizers.SGD(_LEARNING_RATE))
    model.reset_states(preset.batch_size)
    start = tf.zeros([preset.batch_size], tf.int32)
    weights = tf.ones([preset.batch_size, preset.window])
    batches = [
        ((tf.constant(x, tf.int32), start), tf.constant(y, tf.int32), weights)
        for x, y in data
    ]
    return train_function_step(model, batches)


def keras_step(
    preset: Preset, width: int, data: list[Any], seed: int, *, jit_compile: bool
) -> Step:
    """Returns a step of the same model made of stock Keras layers."""
    keras.utils.set_random_seed(seed)
    shape = (preset.batch_size, preset.window)
    tokens = keras.Input(batch_shape=shape, dtype="int32")
    x = keras.layers.Embedding(preset.vocabulary_size, width)(tokens)
    for _ in range(_LAYERS):
        x = keras.layers.LSTM(width, return_sequences=True)(x)
    model = keras.Model(tokens, keras.layers.Dense(preset.vocabulary_size)(x))
    model.compile(
        keras.optimizers.SGD(_LEARNING_RATE, global_clipnorm=_CLIP_NORM),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    batches = [(tf.constant(x, tf.int32), tf.constant(y, tf.int32)) for x, y in data]
    return train_function_step(model, batches)


def torch_lstm_step(
    preset: Preset, width: int, data: list[Any], seed: int, *, compiled: bool
) -> Step | None:
    """Returns a step of the same model in PyTorch; None where that is missing."""
    try:
        import torch
    except ImportError:
        return None
    from experiments.benchmark.torch_language_model import training_step

    def make() -> tuple[Any, list[Any], Any]:
        recurrence = torch.nn.LSTM(width, width, _LAYERS)
        zeros = torch.zeros(_LAYERS, preset.batch_size, width)

        def run(inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
            outputs, state = recurrence(inputs, states[0])
            return outputs, [state]

        return recurrence, [(zeros, zeros)], run

    return training_step(
        preset,
        width,
        data,
        seed,
        make,
        _LEARNING_RATE,
        _CLIP_NORM,
        compiled=compiled,
    )

"""Training steps with Mogrifier and RLSTM cells: ours, Keras' loop and PyTorch's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.benchmark.lstm import random_words
from experiments.benchmark.preset import Preset
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step, train_function_step
from rlm_tf.averaging import TwoTailedAverage, TwoTailedAveraging
from rlm_tf.layers import (
    HiddenStateCell,
    LSTMCell,
    MogrifierLSTMCell,
    RewiredLSTMCell,
)
from rlm_tf.models import RegularizedLanguageModel, count_parameters

_LAYERS, _LEARNING_RATE, _CLIP_NORM = 2, 1.0, 5.0
MOST_OF_KERAS = "at most 0.67"
# Of each timed fit().
_FIT_STEPS = 4
_KERAS, _XLA, _TORCH = "keras.layers.RNN", "keras.layers.RNN, XLA", "PyTorch loop"


def measure(preset: Preset, width: int, rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times whole training steps of language models of each cell in turn.

    The three run the same cell, in two layers, with SGD and a limit on the gradient's
    norm, without dropout, on the same uniformly drawn words: ours in our loop, Keras'
    in `keras.layers.RNN` between Keras' own layers, with and without XLA, PyTorch's in
    a Python loop.
    """
    rank = min(40, width)
    kinds: dict[str, Callable[[], HiddenStateCell]] = {
        f"Mogrifier (5 rounds, rank {rank})": lambda: MogrifierLSTMCell(width, 5, rank),
        "RLSTM": lambda: RewiredLSTMCell(width),
    }
    lines, numbers = [], {}
    for kind, make in kinds.items():
        timings = Timings()
        names = ["ours", _KERAS, _XLA]
        for seed in seeds:
            data = random_words(preset, seed)
            steps = {
                "ours": _our_step(preset, make(), data, seed),
                _KERAS: keras_step(preset, make, data, seed, jit_compile=False),
                _XLA: keras_step(preset, make, data, seed, jit_compile=True),
            }
            torch_step = _torch_step(preset, width, rank, kind, data, seed)
            if torch_step is not None:
                steps[_TORCH] = torch_step
                names = [*steps]
            timings.run(steps, rounds)
        what = f"{kind} training step, {_LAYERS} x {width}"
        targets = {_KERAS: MOST_OF_KERAS, _XLA: "", _TORCH: "at most 1"}
        lines += [
            Line(
                what,
                timings.text("ours"),
                f"{peer}: {timings.text(peer)}",
                timings.ratio("ours", peer),
                targets[peer],
            )
            for peer in names[1:]
        ]
        numbers[kind] = timings.numbers()
    return Row(lines, numbers)


def measure_ratios(
    preset: Preset, width: int, rounds: int, seeds: tuple[int, ...]
) -> Row:
    """Times our steps with stronger cells beside ours with LSTMs, in turn."""
    rank = min(40, width)
    cells: dict[str, Callable[[], HiddenStateCell]] = {
        f"Mogrifier (5 rounds, rank {rank})": lambda: MogrifierLSTMCell(width, 5, rank),
        "RLSTM": lambda: RewiredLSTMCell(width),
        "LSTM": lambda: LSTMCell(width),
    }
    timings = Timings()
    for seed in seeds:
        data = random_words(preset, seed)
        steps = {
            kind: _our_step(preset, make(), data, seed) for kind, make in cells.items()
        }
        timings.run(steps, rounds)
    lines = [
        Line(
            f"{kind} training step, {_LAYERS} x {width}",
            timings.text(kind),
            f"our LSTM: {timings.text('LSTM')}",
            timings.ratio(kind, "LSTM"),
        )
        for kind in cells
        if kind != "LSTM"
    ]
    return Row(lines, timings.numbers())


def measure_averages(preset: Preset, rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times what Two-Tailed Averaging adds to a training step of a large model.

    The sums alone, beside a step; and the callback, on the device and with sums in host
    memory, in `fit()`, beside the same without it. Evaluations do not count.
    """
    width = preset.averaging_width
    timings = Timings()
    for seed in seeds:
        model = _our_model(preset, LSTMCell(width), seed)
        data = random_words(preset, seed, preset.averaging_batch)
        step = _step_of(preset, model, data)
        average = TwoTailedAverage()
        weights = [variable.value for variable in model.trainable_variables]
        average.update(weights)

        def update(average: Any = average, weights: Any = weights) -> None:
            average.update(weights)

        timings.run({"step": step, "update": update}, rounds, warm_up=2)
        timings.run(_fits(model, data), rounds, warm_up=1)
    parameters = count_parameters(model)
    batch, window = preset.averaging_batch
    what = (
        f"both averages of 2TA after a step, {parameters / 1e6:.1f} million parameters"
    )
    line = Line(
        what,
        timings.text("update"),
        f"the step ({batch} rows of {window} words): {timings.text('step')}",
        timings.ratio("update", "step"),
        "at most 0.05",
    )
    fits = [
        Line(
            f"{_FIT_STEPS} such steps in fit() with the callback of 2TA{where}",
            timings.text(name),
            f"without it: {timings.text('fit')}",
            timings.ratio(name, "fit"),
            "at most 1.05",
        )
        for name, where in (("on device", ""), ("on host", ", sums in host memory"))
    ]
    return Row([line, *fits], {"times": timings.numbers(), "parameters": parameters})


def _fits(model: keras.Model, data: list[Any]) -> dict[str, Step]:
    """Returns what trains a model for a few steps, with and without 2TA."""
    x, y = data[0]
    start, weights = np.zeros(len(x), np.int32), np.ones(x.shape, np.float32)
    batch = ((x.astype(np.int32), start), y.astype(np.int32), weights)
    batches = tf.data.Dataset.from_tensors(batch).repeat(_FIT_STEPS)
    # At the end of fit() its thread may sleep on, up to five seconds.
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = batches.with_options(options)

    def fit(*callbacks: keras.callbacks.Callback) -> None:
        model.fit(batches, verbose=0, shuffle=False, callbacks=list(callbacks))

    def never(model: keras.Model) -> float:
        raise AssertionError("an evaluation was due")

    on_device, on_host = (
        TwoTailedAveraging(never, every_steps=10**9, on_device=where)
        for where in (True, False)
    )
    return {
        "fit": fit,
        "on device": functools.partial(fit, on_device),
        "on host": functools.partial(fit, on_host),
    }


# === Steps ===


def _our_model(
    preset: Preset, cell: HiddenStateCell, seed: int
) -> RegularizedLanguageModel:
    model = RegularizedLanguageModel(
        preset.vocabulary_size,
        cell,
        _LAYERS,
        connections="stacked",
        tied=False,
        clip_norm=_CLIP_NORM,
        seed=seed,
    )
    model.compile(keras.optimizers.SGD(_LEARNING_RATE))
    return model


def _our_step(
    preset: Preset, cell: HiddenStateCell, data: list[Any], seed: int
) -> Step:
    return _step_of(preset, _our_model(preset, cell, seed), data)


def _step_of(preset: Preset, model: keras.Model, data: list[Any]) -> Step:
    shape = data[0][0].shape
    model.reset_states(shape[0])
    start, weights = tf.zeros([shape[0]], tf.int32), tf.ones(shape)
    batches = [
        ((tf.constant(x, tf.int32), start), tf.constant(y, tf.int32), weights)
        for x, y in data
    ]
    return train_function_step(model, batches)


def keras_step(
    preset: Preset,
    make: Callable[[], HiddenStateCell],
    data: list[Any],
    seed: int,
    *,
    jit_compile: bool,
) -> Step:
    keras.utils.set_random_seed(seed)
    shape = (preset.batch_size, preset.window)
    tokens = keras.Input(batch_shape=shape, dtype="int32")
    width = make().units
    x = keras.layers.Embedding(preset.vocabulary_size, width)(tokens)
    for _ in range(_LAYERS):
        x = keras.layers.RNN(make(), return_sequences=True)(x)
    model = keras.Model(tokens, keras.layers.Dense(preset.vocabulary_size)(x))
    model.compile(
        keras.optimizers.SGD(_LEARNING_RATE, global_clipnorm=_CLIP_NORM),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    batches = [(tf.constant(x, tf.int32), tf.constant(y, tf.int32)) for x, y in data]
    return train_function_step(model, batches)


def _torch_step(
    preset: Preset, width: int, rank: int, kind: str, data: list[Any], seed: int
) -> Step | None:
    """Returns a step of the same model in PyTorch; None where that is missing."""
    try:
        import torch
    except ImportError:
        return None
    from experiments.benchmark.torch_cells import MogrifierLSTM, RewiredLSTM
    from experiments.benchmark.torch_language_model import training_step

    def make() -> tuple[Any, list[Any], Any]:
        layers = torch.nn.ModuleList(
            [
                MogrifierLSTM(width, 5, rank)
                if "Mogrifier" in kind
                else RewiredLSTM(width)
                for _ in range(_LAYERS)
            ]
        )
        zeros = torch.zeros(preset.batch_size, width)

        def run(hidden: Any, states: list[Any]) -> tuple[Any, list[Any]]:
            new_states = []
            for layer, state in zip(layers, states, strict=True):
                hidden, new_state = layer(hidden, *state)
                new_states.append(new_state)
            return hidden, new_states

        return layers, [(zeros, zeros)] * _LAYERS, run

    return training_step(preset, width, data, seed, make, _LEARNING_RATE, _CLIP_NORM)

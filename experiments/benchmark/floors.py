"""What steps cannot do without, timed alone: products in order, passes over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.benchmark import cells, imm, lstm
from experiments.benchmark.preset import Preset
from experiments.benchmark.stream import Stream, windows
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step
from rlm_tf.layers import MogrifierLSTMCell
from rlm_tf.restricted import KneserNey

_LAYERS, _ROUNDS, _RANK, _ORDER = 2, 5, 40, 5
_TORCH, _KERAS, _PLAIN = "torch.nn.LSTM", "keras.layers.RNN", "plain step"
# Contexts that `OwnContexts` has rows of, so that their entries cost nothing.
_LONG_ROWS = 32
# Numbers of what a product maps.
Sizes = tuple[int, int]


def measure(
    preset: Preset,
    load: Callable[[], Stream],
    width: int,
    rounds: int,
    seeds: tuple[int, ...],
) -> Row:
    """Times parts of steps in turn with what the steps are compared with.

    The matrix products of an LSTM's and of a Mogrifier's step, each where the step has
    it, since a state follows from the one before; the LSTM's with the softmax's
    exponentials, taken once and scaled once. And what matching adds to a plain step:
    with every context in batch two passes over the rows of positions that share their
    word with another and two over those of these words; with each position alone its
    entries gathered once and added once.
    """
    timings, stream, rank = Timings(), load(), min(_RANK, width)
    lstm_sizes = [(width, 4 * width)]
    mogrifier = [(width, rank), (rank, width)] * _ROUNDS + [(2 * width, 4 * width)]
    numbers: dict[str, Any] = {}
    for seed in seeds:
        data = lstm.random_words(preset, seed)
        steps: dict[str, Step] = {
            "LSTM": _products(preset, width, lstm_sizes, hoisted=True),
            "softmax": _products(
                preset, width, lstm_sizes, hoisted=True, exponentials=True
            ),
            "Mogrifier": _products(preset, width, mogrifier, hoisted=False),
            _PLAIN: imm.plain_step(preset, stream, width, seed),
            _KERAS: cells.keras_step(
                preset,
                lambda: MogrifierLSTMCell(width, _ROUNDS, rank),
                data,
                seed,
                jit_compile=False,
            ),
        }
        steps["rows"], numbers["rows"] = _row_passes(preset, stream)
        steps["entries"], numbers["entries"] = _entries(preset, stream)
        torch_step = lstm.torch_lstm_step(preset, width, data, seed, compiled=False)
        if torch_step is not None:
            steps[_TORCH] = torch_step
        timings.run(steps, rounds)
    # A plain step and what is added to it, in the same rounds.
    for name in ("rows", "entries"):
        pairs = zip(timings.seconds[_PLAIN], timings.seconds[name], strict=True)
        timings.seconds[name] = [plain + added for plain, added in pairs]
    shape = f"{_LAYERS} x {width}"
    wanted = (
        (f"products of an LSTM step, {shape}", "LSTM", _TORCH, lstm.TARGETS),
        (
            f"products of an LSTM step, {shape}, and the softmax's exponentials",
            "softmax",
            _TORCH,
            lstm.TARGETS,
        ),
        (
            f"products of a step with Mogrifier ({_ROUNDS} rounds, rank {rank}), "
            f"{shape}",
            "Mogrifier",
            _KERAS,
            {width: cells.MOST_OF_KERAS},
        ),
        (
            f"plain step, {shape}, and passes over rows of {imm.EVERY}",
            "rows",
            _PLAIN,
            imm.TARGETS[imm.EVERY],
        ),
        (
            f"plain step, {shape}, and entries of {imm.OWN}",
            "entries",
            _PLAIN,
            imm.TARGETS[imm.OWN],
        ),
    )
    lines = [
        Line(
            f"floor: {what}",
            timings.text(name),
            f"{peer}: {timings.text(peer)}",
            timings.ratio(name, peer),
            f"of the step: {targets[width]}" if width in targets else "",
        )
        for what, name, peer, targets in wanted
        if peer in timings.seconds
    ]
    return Row(lines, {"times": timings.numbers(), "corpus": stream.name, **numbers})


# === Parts ===


def _products(
    preset: Preset,
    width: int,
    recurrent: Sequence[Sizes],
    *,
    hoisted: bool,
    exponentials: bool = False,
) -> Step:
    """Returns the matrix products of a training step, forward and backward.

    Args:
        preset: Gives batch, window and vocabulary.
        width: Of the layers.
        recurrent: What the products of a time step map, in their order.
        hoisted: Whether inputs have a product of their own, over the whole window.
        exponentials: Whether those of the logits are taken as well.
    """
    rows, window = preset.batch_size, preset.window
    rng = np.random.default_rng(0)

    def matrix(*shape: int) -> tf.Tensor:
        return tf.constant(rng.normal(0, 0.01, shape), tf.float32)

    inputs, table = matrix(rows * window, width), matrix(preset.vocabulary_size, width)
    kernels = [matrix(*sizes) for sizes in recurrent]
    input_kernel = matrix(width, 4 * width)

    def run() -> list[tf.Tensor]:
        found, hidden = [], inputs
        for _ in range(_LAYERS):
            if hoisted:
                found.append(hidden @ input_kernel)
            # What a layer begins with is its own, or graphs would compute it once.
            state, states = hidden[:rows], []
            for _ in range(window):
                for kernel in kernels:
                    state = _sized(state, kernel.shape[0]) @ kernel
                state = _sized(state, width)
                states.append(state)
            hidden = tf.concat(states, axis=0)
        logits = tf.matmul(hidden, table, transpose_b=True)
        if exponentials:
            logits = tf.exp(logits)
            logits *= hidden[:, :1]
        found.append(tf.matmul(logits, hidden, transpose_a=True))
        gradient = logits @ table
        for _ in range(_LAYERS):
            state, states, further = gradient[:rows], [], []
            for _ in range(window):
                for kernel in reversed(kernels):
                    state = _sized(state, kernel.shape[1])
                    states.append(state)
                    state = tf.matmul(state, kernel, transpose_b=True)
                state = _sized(state, width)
                further.append(state)
            gradient = tf.concat(further, axis=0)
            for number, kernel in enumerate(reversed(kernels)):
                own = tf.concat(states[number :: len(kernels)], axis=0)
                before = _sized(hidden, kernel.shape[0])
                found.append(tf.matmul(before, own, transpose_a=True))
            if hoisted:
                found.append(tf.matmul(hidden, own, transpose_a=True))
                gradient = tf.matmul(own, input_kernel, transpose_b=True)
        return [gradient, *found]

    return _waiting(run)


def _sized(rows: tf.Tensor, width: int) -> tf.Tensor:
    """Returns rows cut or repeated to a width."""
    found = int(rows.shape[1])
    if found == width:
        return rows
    return tf.tile(rows, [1, -(-width // found)])[:, :width]


def _row_passes(preset: Preset, stream: Stream) -> tuple[Step, dict[str, int]]:
    """Returns passes over rows of positions that share their word, and their counts."""
    (words, _), _, _ = windows(stream, preset.batch_size, preset.window, 1)[0]
    _, counts = np.unique(words.numpy(), return_counts=True)
    shared = {
        "positions": int(counts[counts > 1].sum()),
        "words": int((counts > 1).sum()),
    }
    large, small = (
        tf.ones([number, preset.vocabulary_size]) for number in shared.values()
    )

    def run() -> list[tf.Tensor]:
        return [part * factor for part in (large, small) for factor in (0.5, 2.0)]

    return _waiting(run), shared


def _entries(preset: Preset, stream: Stream) -> tuple[Step, int]:
    """Returns entries gathered and added once, and how many a batch has."""
    (words, _), _, _ = windows(stream, preset.batch_size, preset.window, 1)[0]
    tokens = np.concatenate([np.zeros(_ORDER - 2, int), words.numpy().ravel()])
    contexts = np.lib.stride_tricks.sliding_window_view(tokens, _ORDER - 1)
    n_gram = KneserNey(_ORDER).fit(stream.tokens, stream.vocabulary_size)
    sparse = n_gram.sparse_probs(contexts, long_rows=_LONG_ROWS)
    places = tf.cast(sparse.rows, tf.int64) * stream.vocabulary_size
    places += tf.cast(sparse.words, tf.int64)
    size = len(contexts) * stream.vocabulary_size
    array = tf.Variable(tf.zeros([size]))

    def run() -> list[tf.Tensor]:
        values = tf.gather(array.read_value(), places)
        return [array.scatter_add(tf.IndexedSlices(values, places))]

    return _waiting(run), len(places)


def _waiting(run: Callable[[], list[tf.Tensor]]) -> Step:
    """Returns a compiled function that returns when all is there."""
    compiled = tf.function(run, autograph=False)

    def step() -> None:
        for found in compiled():
            found[:1].numpy()

    return step

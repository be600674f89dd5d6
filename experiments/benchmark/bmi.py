"""Steps of the AWD-LSTM and of the mutual-information regulariser; memory; the tool.

    python -m experiments.benchmark.bmi '{"components": 15, ...}'

prints the memory of a step of a mixture, see `Point`, as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from experiments.benchmark.preset import PRESETS, Preset
from experiments.benchmark.processes import STATUS, in_a_process, mebibytes, resident
from experiments.benchmark.stream import Stream
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step, duration, train_function_step

_LEARNING_RATE, _CLIP_NORM = 20.0, 0.25
_RATES = {
    "word": 0.1,
    "input": 0.4,
    "layer": 0.225,
    "output": 0.4,
    "projection": 0.29,
    "weight": 0.5,
}
_PENALTIES = (2.0, 1.0)
_TORCH = "PyTorch"
_LOGITS = {True: "logits computed twice", False: "logits kept"}


def measure_steps(
    preset: Preset,
    load: Callable[[], Stream],
    rounds: int,
    seeds: tuple[int, ...],
) -> Row:
    """Times AWD-LSTM-MoS beside PyTorch, less regularised, and with BMI.

    All read the same text. BMI has as many pairs as the text has rows, of sentences of
    up to 40 words.
    """
    timings, stream = Timings(), load()
    batch, window = preset.awd_batch
    width, components = preset.awd_width, preset.awd_components
    name = (
        f"AWD-LSTM-MoS step, 2 x {width}, {components} softmaxes, {batch} rows of "
        f"{window}"
    )
    for seed in seeds:
        steps = {
            "ours": _step(preset, stream, seed),
            "plain": _step(preset, stream, seed, plain=True),
            "Phase I": _step(preset, stream, seed, phases=1),
            "I + II": _step(preset, stream, seed, phases=2),
        }
        torch_step = _torch_step(preset, stream, seed)
        if torch_step is not None:
            steps[_TORCH] = torch_step
        timings.run(steps, rounds)
    lines = [Line(name, timings.text("ours"), f"{_TORCH}: not installed")]
    if _TORCH in timings.seconds:
        peer = f"{_TORCH}: {timings.text(_TORCH)}"
        ratio = timings.ratio("ours", _TORCH)
        lines = [Line(name, timings.text("ours"), peer, ratio, "at most 1")]
    for what, ours, peer, target in (
        (name, "ours", "plain", "at most 1.1"),
        (f"with BMI, Phase I, {batch} pairs of 40", "Phase I", "ours", "at most 1.7"),
        (f"with BMI, I + II, {batch} pairs of 40", "I + II", "ours", "at most 2.5"),
    ):
        label = {
            "plain": "without weight drop, dropout not locked",
            "ours": "without BMI",
        }[peer]
        lines.append(
            Line(
                what,
                timings.text(ours),
                f"{label}: {timings.text(peer)}",
                timings.ratio(ours, peer),
                target,
            )
        )
    return Row(lines, {"times": timings.numbers(), "corpus": stream.name})


def _step(
    preset: Preset,
    stream: Stream,
    seed: int,
    *,
    plain: bool = False,
    phases: int = 0,
    size: tuple[Sequence[int], int] | None = None,
    recompute_logits: bool = False,
) -> Step:
    import keras

    from rlm_tf.data import SentencePairs, contiguous_batches
    from rlm_tf.models import BootstrappedMutualInformation
    from rlm_tf.training import ResumableBatches

    batch, window = preset.awd_batch
    widths, components = size or ([preset.awd_width] * 3, preset.awd_components)
    model: Any = _model(preset, widths, components, seed, plain, recompute_logits)
    windows = contiguous_batches(stream.tokens, batch, window, prefix=0)
    data = ResumableBatches(windows)
    if phases:
        model = BootstrappedMutualInformation(
            model, phase_two="raml" if phases == 2 else None
        )
        # The most frequent word ends sentences; the text's own ends are lost.
        pairs = SentencePairs(stream.tokens, 0, batch, seed=seed)
        data = ResumableBatches(windows, transform=pairs)
    model.compile(keras.optimizers.SGD(_LEARNING_RATE))
    if phases == 2:
        model.set_phase(1)
    return train_function_step(model, list(data.dataset.take(4)))


def _model(
    preset: Preset,
    widths: Sequence[int],
    components: int,
    seed: int,
    plain: bool = False,
    recompute_logits: bool = False,
) -> Any:
    from rlm_tf.layers import LSTMCell
    from rlm_tf.models import AWDLanguageModel, RegularizedLanguageModel

    common: dict[str, Any] = {
        "mixture_components": components,
        "input_dropout": _RATES["input"],
        "layer_dropout": _RATES["layer"],
        "output_dropout": _RATES["output"],
        "projection_dropout": _RATES["projection"],
        "word_dropout": _RATES["word"],
        "activation_penalty": _PENALTIES[0],
        "temporal_penalty": _PENALTIES[1],
        "embedding_width": widths[0],
        "clip_norm": _CLIP_NORM,
        "seed": seed,
    }
    if plain:
        return RegularizedLanguageModel(
            preset.vocabulary_size,
            LSTMCell(widths[0]),
            2,
            connections="stacked",
            tied=True,
            **common,
        )
    return AWDLanguageModel(
        preset.vocabulary_size,
        units=widths[1:],
        weight_drop=_RATES["weight"],
        recompute_logits=recompute_logits,
        **common,
    )


def _torch_step(preset: Preset, stream: Stream, seed: int) -> Step | None:
    try:
        import torch
    except ImportError:
        return None
    import numpy as np

    from experiments.benchmark.torch_awd import AWD, training_step

    batch, window = preset.awd_batch
    torch.manual_seed(seed)
    rows = np.resize(stream.tokens, (batch, 4 * window + 1)).astype(np.int64)
    data = [
        (rows[:, i : i + window], rows[:, i + 1 : i + window + 1])
        for i in range(0, 4 * window, window)
    ]
    width = preset.awd_width
    model = AWD(
        preset.vocabulary_size,
        width,
        (width, width),
        preset.awd_components,
        _RATES,
    )
    return training_step(model, data, _LEARNING_RATE, _CLIP_NORM, _PENALTIES)


# === Memory ===


@dataclasses.dataclass(frozen=True)
class Point:
    """What one process measures.

    Attributes:
        preset: Name of the preset.
        components: Softmaxes.
        recompute_logits: Whether logits of one softmax are kept, or of all.
        seed: Seed of weights and words.
    """

    preset: str
    components: int
    recompute_logits: bool
    seed: int


def measure_memory(
    name: str,
    preset: Preset,
    load: Callable[[], Stream],
    rounds: int,
    seeds: tuple[int, ...],
) -> Row:
    """Measures a step of 15 softmaxes: peak memory, a process each, and its time."""
    width, *units = preset.mixture_units
    what = (
        f"step of {width}, {'-'.join(map(str, units))}, "
        f"{preset.mixture_components} softmaxes of "
        f"{preset.vocabulary_size:,} words, {preset.awd_batch[0]} rows of "
        f"{preset.awd_batch[1]}"
    )
    if not STATUS.is_file():
        return Row([Line(what, "needs /proc (Linux)")], {})
    batch, window = preset.awd_batch
    positions = batch * window * preset.mixture_components
    array = 4 * positions * preset.vocabulary_size / 2**20
    lines, points = [], []
    for recompute in (True, False):
        found = []
        for seed in seeds:
            for _ in range(preset.memory_processes):
                point = Point(name, preset.mixture_components, recompute, seed)
                numbers = in_a_process(__spec__.name, point)
                points.append(dataclasses.asdict(point) | numbers)
                found.append(numbers["step_mib"])
        lines.append(
            Line(
                f"peak memory of a {what}, {_LOGITS[recompute]}",
                mebibytes(found),
                f"one array of all their logits: {array:,.0f} MiB",
                f"{statistics.median(found) / array:.2f}",
                "at most 1" if recompute else "",
            )
        )
    timings, stream = Timings(), load()
    size = preset.mixture_units, preset.mixture_components
    for seed in seeds:
        steps = {
            _LOGITS[recompute]: _step(
                preset, stream, seed, size=size, recompute_logits=recompute
            )
            for recompute in (True, False)
        }
        timings.run(steps, rounds, warm_up=1)
    twice, kept = _LOGITS[True], _LOGITS[False]
    lines.append(
        Line(
            f"{what}, {twice}",
            timings.text(twice),
            f"{kept}: {timings.text(kept)}",
            timings.ratio(twice, kept),
        )
    )
    times = timings.numbers()
    return Row(lines, {"points": points, "array_mib": array, "times": times})


def measure_point(point: Point) -> dict[str, float]:
    """Returns what a step adds to the resident set at its peak, in MiB.

    A step on one row of two words comes first: what is resident after it, model and
    graph, is the baseline.
    """
    import keras
    import numpy as np
    import tensorflow as tf

    preset = PRESETS[point.preset]
    model = _model(
        preset,
        preset.mixture_units,
        point.components,
        point.seed,
        recompute_logits=point.recompute_logits,
    )
    model.compile(keras.optimizers.SGD(_LEARNING_RATE))
    rng = np.random.default_rng(point.seed)

    @tf.function(reduce_retracing=True)
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return model.train_step((x, y, tf.ones(tf.shape(y))))["loss"]

    def run(rows: int, steps: int) -> None:
        words = rng.integers(preset.vocabulary_size, size=(rows, steps + 1))
        step(tf.constant(words[:, :-1], tf.int32), tf.constant(words[:, 1:], tf.int32))

    run(1, 2)
    run(2, 3)
    baseline = resident("VmRSS")
    run(*preset.awd_batch)
    peak = resident("VmHWM")
    return {
        "baseline_mib": baseline,
        "peak_mib": peak,
        "step_mib": peak - baseline,
    }


# === The tool ===


def measure_tool(
    preset: Preset, load: Callable[[], Stream], seeds: tuple[int, ...]
) -> Row:
    """Times `rlm_tf coherence` on a file of a million tokens: ten folds, one gap."""
    stream = load()
    tokens = stream.tokens[: preset.tool_tokens]
    times, values = [], []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            text, out = (pathlib.Path(folder, name) for name in ("text.txt", "out"))
            text.write_text(" ".join(f"w{token}" for token in tokens))
            command = [
                *(sys.executable, "-m", "rlm_tf.commands.coherence"),
                *(f"--text={text}", f"--output_dir={out}", f"--seed={seed}"),
                *("--gaps=10", f"--segment={preset.tool_segment}"),
                f"--folds={preset.tool_folds}",
            ]
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - began)
            (row,) = json.loads((out / "report.json").read_text())["rows"]
        values.append(row["mine"])
    line = Line(
        f"`rlm_tf coherence`, {len(tokens):,} tokens, {preset.tool_folds} folds, one "
        "gap, shuffled texts",
        duration(statistics.median(times)),
        target="at most 360 s",
    )
    return Row([line], {"seconds": times, "mine": values, "corpus": stream.name})


if __name__ == "__main__":
    from rlm_tf.command_line.quiet import silence_tensorflow

    silence_tensorflow()
    print(json.dumps(measure_point(Point(**json.loads(sys.argv[1])))))

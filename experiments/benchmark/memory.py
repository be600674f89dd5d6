"""Peak memory of the crosstalk and of the direct gradient, a process each.

    python -m experiments.benchmark.memory '{"gradient": "crosstalk", "k": 1, ...}'

prints the memory of one point, see `Point`, as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys

import tqdm

from experiments.benchmark.preset import PRESETS, Preset
from experiments.benchmark.processes import (
    STATUS,
    in_a_process,
    mebibytes,
    resident,
    said_of,
)
from experiments.benchmark.timing import Line, Row


@dataclasses.dataclass(frozen=True)
class Point:
    """What one process measures.

    Attributes:
        preset: Name of the preset.
        data_dir: Folder with the data sets, or "".
        gradient: `"crosstalk"` or `"direct"`.
        k: Number of samples.
        seed: Seed of weights and draws.
    """

    preset: str
    data_dir: str
    gradient: str
    k: int
    seed: int


def measure(name: str, preset: Preset, data_dir: str, seeds: tuple[int, ...]) -> Row:
    """Measures every point in processes of their own; medians and ranges.

    What TensorFlow allocates differs from process to process.

    Raises:
        RuntimeError: If one of the processes fails.
    """
    wanted = {"crosstalk": preset.crosstalk_ks, "direct": preset.direct_ks}
    if not STATUS.is_file():
        return Row([Line("peak memory of the IMM step", "needs /proc (Linux)")], {})
    found: dict[str, dict[int, list[float]]] = {}
    points = []
    wanted_points = [
        Point(name, data_dir, gradient, k, seed)
        for gradient, ks in wanted.items()
        for k in ks
        for seed in seeds
        for _ in range(preset.memory_processes)
    ]
    for point in tqdm.tqdm(wanted_points, desc="memory", leave=False, disable=None):
        numbers = in_a_process(__spec__.name, point)
        points.append(said_of(point) | numbers)
        by_k = found.setdefault(point.gradient, {})
        by_k.setdefault(point.k, []).append(numbers["step_mib"])
    lines = []
    for gradient, by_k in found.items():
        first, *others = by_k
        for k in others:
            bounded = gradient == "crosstalk" and k == max(by_k)
            ratio = statistics.median(by_k[k]) / statistics.median(by_k[first])
            lines.append(
                Line(
                    f"peak memory of the paper's sampler, {gradient} gradient, k = {k}",
                    mebibytes(by_k[k]),
                    f"k = {first}: {mebibytes(by_k[first])}",
                    f"{ratio:.2f}",
                    "at most 1.2" if bounded else "",
                )
            )
    return Row(lines, {"points": points})


# === In the process ===


def measure_point(point: Point) -> dict[str, float]:
    """Returns what one IMM step adds to the resident set at its peak, in MiB.

    A first step runs with IMM switched off (`active` = 0): the same graph, without
    samples. What is resident after it, the model, the data, TensorFlow and the compiled
    graph, is the baseline.

    Returns:
        `baseline_mib`, `peak_mib` of the whole process, their difference `step_mib`.
    """
    # TensorFlow starts only now: the caller silences it first.
    from experiments.benchmark.imm import wrapped_model
    from experiments.benchmark.stream import training_stream, windows
    from experiments.kit.timing import train_function_step
    from rlm_tf.models import SampledContexts

    preset = PRESETS[point.preset]
    stream = training_stream(point.data_dir, preset.vocabulary_size)
    contexts = SampledContexts(stream.tokens, point.k, preset.window, seed=point.seed)
    model = wrapped_model(
        preset, stream, preset.memory_width, point.seed, contexts, point.gradient
    )
    batches = windows(stream, preset.batch_size, preset.window, 2)
    step = train_function_step(model, batches)
    model.active.assign(0.0)
    step()
    baseline = resident("VmRSS")
    model.active.assign(1.0)
    step()
    peak = resident("VmHWM")
    return {
        "baseline_mib": baseline,
        "peak_mib": peak,
        "step_mib": peak - baseline,
    }


if __name__ == "__main__":
    from rlm_tf.command_line.quiet import silence_tensorflow

    silence_tensorflow()
    print(json.dumps(measure_point(Point(**json.loads(sys.argv[1])))))

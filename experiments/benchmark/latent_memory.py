"""Peak memory of a step of a latent-variable model, beside its decoder's alone.

    python -m experiments.benchmark.latent_memory '{"part": "step", ...}'

prints the memory of one point, see `Point`, as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys

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
        estimator: `vimco` or `dreg`.
        part: `step`: gradients of a whole step; `decoder`: the decoder forward and
            backward alone, for as many samples.
        samples: K.
        seed: Seed of weights and draws.
    """

    preset: str
    estimator: str
    part: str
    samples: int
    seed: int


def measure(name: str, preset: Preset, seeds: tuple[int, ...]) -> Row:
    """Measures every point in processes of their own; medians and ranges.

    Raises:
        RuntimeError: If one of the processes fails.
    """
    if not STATUS.is_file():
        return Row([Line("peak memory of a VIMCO step", "needs /proc (Linux)")], {})
    lines, points = [], []
    samples = preset.latent_samples
    for estimator in ("vimco", "dreg"):
        found: dict[str, list[float]] = {}
        for part in ("step", "decoder"):
            for seed in seeds:
                for _ in range(preset.memory_processes):
                    point = Point(name, estimator, part, samples, seed)
                    numbers = in_a_process(__spec__.name, point)
                    points.append(said_of(point) | numbers)
                    found.setdefault(part, []).append(numbers["step_mib"])
        ratio = statistics.median(found["step"]) / statistics.median(found["decoder"])
        lines.append(
            Line(
                f"peak memory of a {estimator.upper()}-{samples} step, "
                f"{preset.vocabulary_size:,} symbols, {preset.latent_batch} examples",
                mebibytes(found["step"]),
                f"its decoder alone: {mebibytes(found['decoder'])}",
                f"{ratio:.2f}",
                "at most 1.2",
            )
        )
    return Row(lines, {"points": points})


# === In the process ===


def measure_point(point: Point) -> dict[str, float]:
    """Returns what gradients of a batch add to the resident set at its peak, in MiB.

    Gradients of one example come first: what is resident after them, the model and
    TensorFlow with its graphs, is the baseline.

    Returns:
        `baseline_mib`, `peak_mib` of the whole process, their difference `step_mib`.
    """
    # TensorFlow starts only now: the caller silences it first.
    import tensorflow as tf

    from experiments.benchmark.latents import decoder_alone, latent_model
    from rlm_tf.models.latent.latent_gradients import sample_gradients

    preset = PRESETS[point.preset]
    model = latent_model(preset, point.estimator, point.samples, point.seed)
    variables = model.trainable_variables

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def step(x: tf.Tensor) -> tf.Tensor:
        scale = tf.ones(tf.shape(x))
        _, gradients = sample_gradients(model, x, variables, scale)
        return tf.add_n([tf.reduce_sum(g) for g in gradients if g is not None])

    run = step if point.part == "step" else decoder_alone(model, point.samples)
    run(tf.zeros([1], tf.int32))
    baseline = resident("VmRSS")
    run(tf.range(preset.latent_batch) % preset.vocabulary_size)
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

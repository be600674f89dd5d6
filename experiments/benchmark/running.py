"""Measures rows and keeps them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from experiments.benchmark.config import Config
from experiments.benchmark.preset import PRESETS, Preset
from experiments.benchmark.report import Report
from experiments.benchmark.timing import Row
from experiments.kit.machine import OtherPrograms
from rlm_tf.command_line import run_lock


def main(config: Config) -> Report:
    """Measures the rows, one after the other; returns everything known now.

    Raises:
        ValueError: If an option is impossible, or the output folder holds something
            else.
        BlockingIOError: If another process measures the same row there.
    """
    if config.preset not in PRESETS:
        raise ValueError(
            f"--preset must be one of {', '.join(PRESETS)}; found {config.preset!r}."
        )
    if not config.seeds:
        raise ValueError("--seeds must name at least one integer.")
    preset = PRESETS[config.preset]
    from experiments.benchmark.stream import corpus_name

    rows = _rows(config, preset)
    unknown = [name for name in config.rows if name not in rows]
    if unknown:
        raise ValueError(
            f"--rows must be some of {', '.join(rows)}; found {', '.join(unknown)}."
        )
    return _measure(config, rows, corpus_name(config.data_dir))


def _measure(config: Config, rows: dict[str, Callable[[], Row]], corpus: str) -> Report:
    report = Report(config.output_dir, config.preset, config.results_dir)
    inputs = {"seeds": list(config.seeds), "corpus": corpus}
    wanted = [name for name in rows if not config.rows or name in config.rows]
    for number, name in enumerate(wanted, start=1):
        place = f"[{number}/{len(wanted)}] {name:12}"
        if config.resume and report.holds(name, inputs):
            print(f"{place} is there already", flush=True)
            continue
        with run_lock.held(report.folder / name):
            print(f"{place} ...", end="", flush=True)
            start, others = time.perf_counter(), OtherPrograms()
            row = rows[name]()
            seconds = time.perf_counter() - start
            report.add(
                name,
                row,
                seconds=seconds,
                other_programs=others.cores(),
                inputs=inputs,
            )
        print(f" {seconds:6.1f} s", flush=True)
    print(f"\n{report.table()}\nWritten to {report.results.path}.")
    return report


def _rows(config: Config, preset: Preset) -> dict[str, Callable[[], Row]]:
    """Returns what measures each row, in the table's order."""
    import tensorflow as tf

    from experiments.benchmark import (
        bmi,
        cells,
        distillation,
        encoders,
        floors,
        imm,
        kneser_ney,
        large_counts,
        latent_memory,
        latents,
        lstm,
        memory,
        reading,
        seed_words,
        serving,
        small_tasks,
    )
    from experiments.benchmark.stream import training_stream

    tf.config.set_visible_devices([], "GPU")
    stream = functools.cache(
        functools.partial(training_stream, config.data_dir, preset.vocabulary_size)
    )
    seeds = config.seeds
    rows: dict[str, Callable[[], Row]] = {}
    for width, rounds in zip(preset.widths, preset.rounds, strict=True):
        rows[f"lstm-{width}"] = functools.partial(
            lstm.measure, preset, width, rounds, seeds
        )
    for width, rounds in zip(preset.widths, preset.rounds, strict=True):
        rows[f"cells-{width}"] = functools.partial(
            cells.measure, preset, width, rounds, seeds
        )
    for width, rounds in zip(preset.widths, preset.rounds, strict=True):
        rows[f"ratios-{width}"] = functools.partial(
            cells.measure_ratios, preset, width, rounds, seeds
        )
    rows["averages"] = functools.partial(
        cells.measure_averages, preset, min(preset.rounds), seeds
    )
    for width, rounds in zip(preset.widths, preset.rounds, strict=True):
        rows[f"imm-{width}"] = functools.partial(
            imm.measure_in_batch, preset, stream, width, rounds, seeds
        )
    for width, rounds in zip(preset.widths, preset.rounds, strict=True):
        rows[f"floors-{width}"] = functools.partial(
            floors.measure, preset, stream, width, rounds, seeds
        )
    for width in preset.widths:
        rows[f"sampler-{width}"] = functools.partial(
            imm.measure_sampled, preset, stream, width, seeds
        )
    rows["memory"] = functools.partial(
        memory.measure, config.preset, preset, config.data_dir, seeds
    )
    rows["reading"] = functools.partial(reading.measure, min(preset.rounds), seeds)
    rows["kneser-ney"] = functools.partial(
        kneser_ney.measure, preset, stream, seeds, (2, 3)
    )
    rows["large-counts"] = functools.partial(
        large_counts.measure, preset, config.data_dir, seeds
    )
    rows["serving"] = functools.partial(
        serving.measure, preset, stream, min(preset.rounds), seeds
    )
    rows["latents"] = functools.partial(
        latents.measure, preset, preset.latent_rounds, seeds
    )
    rows["latent-memory"] = functools.partial(
        latent_memory.measure, config.preset, preset, seeds
    )
    rows["awd"] = functools.partial(
        bmi.measure_steps, preset, stream, min(preset.rounds), seeds
    )
    rows["mixture-memory"] = functools.partial(
        bmi.measure_memory, config.preset, preset, stream, min(preset.rounds), seeds
    )
    rows["information"] = functools.partial(bmi.measure_tool, preset, stream, seeds)
    for name, measure in (
        ("encoders", encoders.measure_pretraining),
        ("finetuning", encoders.measure_finetuning),
    ):
        rows[name] = functools.partial(measure, preset, stream, preset.rounds[0], seeds)
    rows["distillation"] = functools.partial(
        distillation.measure_images, preset, preset.image_rounds, seeds
    )
    rows["store"] = functools.partial(
        distillation.measure_store, preset, preset.rounds[0], seeds
    )
    rows["losses"] = functools.partial(
        distillation.measure_losses, preset, preset.rounds[0], seeds
    )
    rows["language-distillation"] = functools.partial(
        distillation.measure_language, preset, stream, preset.rounds[0], seeds
    )
    rows["seed-matching"] = functools.partial(
        seed_words.measure_matching, preset, config.data_dir, seeds
    )
    rows["seed-linear"] = functools.partial(
        seed_words.measure_linear, preset, config.data_dir, seeds
    )
    for name, measure_seeds in (
        ("seed-step", seed_words.measure_steps),
        ("seed-serving", seed_words.measure_serving),
    ):
        rows[name] = functools.partial(
            measure_seeds, preset, config.data_dir, preset.rounds[0], seeds
        )
    rows["seed-tool"] = functools.partial(
        seed_words.measure_tool, preset, config.data_dir, seeds
    )
    rows["grid"] = functools.partial(small_tasks.measure_grid, preset, seeds)
    rows["logistic"] = functools.partial(small_tasks.measure_logistic, preset, seeds)
    return rows

"""What `python -m experiments.mi_vae` does once its flags are read."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import keras
from absl import flags

from experiments.kit import run_flags, run_workers
from experiments.kit.run_list import finished_rows, run_all
from experiments.kit.vae_config import VaeConfig, check_config, without_idle
from experiments.mi_vae import (
    report,
    sentences_report,
    signal,
    studies,
    sweep,
    symbols_report,
    training,
)
from experiments.mi_vae.tables import study_tables
from rlm_tf.command_line import flags as config_flags
from rlm_tf.data import Corpus, Vocabulary, load_corpus
from rlm_tf.serving import check_export_path, export_latent_model
from rlm_tf.training import TrainingDivergedError

FLAGS = flags.FLAGS

_OF_TRIALS = ("search", "initial", "trade", "regularisation")


def main() -> None:
    """Runs what is not done yet, then writes table and figure."""
    _refuse_idle_flags()
    chosen = _configs()
    if not FLAGS.trials:
        for config in chosen.values():
            check_config(config)
    corpora = {
        name: load_corpus(name, FLAGS.data_dir)
        for name in {config.corpus for config in chosen.values()}
        if name
    }
    if FLAGS.export:
        _check_export(list(chosen.values())[-1])
    if FLAGS.project_steps:
        _project(chosen, corpora)
        return
    if FLAGS.trials:
        rows, output = _search(chosen, corpora), pathlib.Path(FLAGS.output_dir)
        _report(rows, output)
        return
    output, results = run_flags.folders(FLAGS.study)
    runs = [
        training.run_of(
            name,
            config,
            corpora.get(config.corpus),
            FLAGS.strategy,
            FLAGS.checkpoint_seconds,
            signal.train_and_measure if FLAGS.study == "signal" else training.train,
        )
        for name, config in chosen.items()
    ]
    if FLAGS.study == "signal":
        runs = [signal.with_measurement(run) for run in runs]
    run_flags.check_exportable(output, results, runs[-1].name)
    try:
        rows = run_all(runs, output, results, FLAGS.resume)
    except TrainingDivergedError:
        # One that diverged leaves the others their table.
        rows = finished_rows(runs, results)
        if rows:
            _report(rows, output)
        raise
    _report(rows, output)
    if FLAGS.export:
        _export(output / runs[-1].name, list(chosen.values())[-1])


def _refuse_idle_flags() -> None:
    """Raises ValueError if a flag was given that would change nothing."""
    idle = [name for name in _OF_TRIALS if FLAGS[name].present]
    if idle and not FLAGS.trials:
        raise ValueError(f"--{', --'.join(idle)}: only with --trials.")
    if FLAGS["initial"].present and FLAGS.search != "gp":
        raise ValueError("--initial: only with --search=gp.")
    if FLAGS.trials and FLAGS.project_steps:
        raise ValueError("--trials and --project_steps: only one of them.")


def _report(rows: list[dict[str, Any]], output: pathlib.Path) -> None:
    """Writes what the study shows, or one table and one figure."""
    if not rows:
        raise ValueError(f"{output}: no point was finished.")
    output.mkdir(parents=True, exist_ok=True)
    tables = list(study_tables(FLAGS.study, rows).values())
    if FLAGS.study == "signal":
        signal.signal_figure(rows, output / "signal.png")
    elif FLAGS.study == "sentences":
        sentences_report.sentences_figure(rows, output / "sentences.png")
    else:
        report.pareto_figure(rows, output / "pareto.png")
    if FLAGS.study == "symbols":
        symbols_report.panels_figure(rows, output / "symbols.png")
        symbols_report.rates_figure(rows, output / "rates.png")
    if FLAGS.study != "signal":
        tables.append(report.seeds_table(rows))
    text = "\n\n".join(filter(None, tables))
    (output / "table.md").write_text(text + "\n", "utf-8")
    print(f"\n{text}\n\n{output}", flush=True)


def _check_export(config: VaeConfig) -> None:
    if not config.corpus or config.latents == "quantised" or FLAGS.trials:
        raise ValueError(
            "--export is for models of sentences (--corpus) with normal or categorical "
            "latents, without --trials."
        )
    check_export_path(FLAGS.export, overwrite=True)


def _export(folder: pathlib.Path, config: VaeConfig) -> None:
    """Writes the SavedModel that `--export` asks for, and shows what it says."""
    model = keras.models.load_model(folder / "model.keras", compile=False)
    vocabulary = Vocabulary.load(folder / "vocabulary.txt")
    export_latent_model(
        model,
        vocabulary,
        FLAGS.export,
        most_tokens=config.most_tokens,
        overwrite=True,
    )
    print(
        f"{FLAGS.export}: SavedModel with signatures encode, decode, score, interpolate"
    )


def _project(chosen: dict[str, VaeConfig], corpora: dict[str, Corpus]) -> None:
    found = {}
    for name, config in chosen.items():
        corpus = corpora.get(config.corpus)
        found[name] = training.project(config, corpus, FLAGS.project_steps)
        hours, steps = found[name]["hours_of_all_steps"], found[name]["steps"]
        print(f"{name}: {hours:,.1f} h for {steps:,} steps", flush=True)
    run_flags.write_row("projection", found)


def _search(
    chosen: dict[str, VaeConfig], corpora: dict[str, Corpus]
) -> list[dict[str, Any]]:
    if FLAGS.study or len(chosen) != 1:
        raise ValueError("--trials is for one --preset and one of --seeds.")
    (config,) = chosen.values()
    space = sweep.space_of(config, FLAGS.regularisation)
    given = set(config_flags.given_flags(VaeConfig)) & {*space}
    if given:
        raise ValueError(
            f"--trials tunes what is given: --{', --'.join(sorted(given))}."
        )
    output = pathlib.Path(FLAGS.output_dir)
    with run_workers.held(output / "search"):
        return sweep.search(
            config,
            corpora.get(config.corpus),
            space,
            output,
            trials=FLAGS.trials,
            initial=FLAGS.initial if FLAGS.search == "gp" else FLAGS.trials,
            trade=FLAGS.trade,
            strategy=FLAGS.strategy,
            resume=FLAGS.resume,
        )


def _configs() -> dict[str, VaeConfig]:
    seeds = run_flags.seeds()
    if FLAGS.only and not FLAGS.study:
        raise ValueError("--only chooses runs of a study; give --study, too.")
    if FLAGS.study:
        run_flags.refuse_settings_beside_study(VaeConfig, ("preset",))
        chosen = studies.STUDIES[FLAGS.study](seeds)
    else:
        config = without_idle(
            config_flags.config_from_flags(studies.PRESETS[FLAGS.preset]),
            config_flags.given_flags(VaeConfig),
        )
        chosen = {
            f"{FLAGS.preset}-seed{seed}": dataclasses.replace(config, seed=seed)
            for seed in seeds
        }
    return run_flags.runs_like(chosen, FLAGS.only)

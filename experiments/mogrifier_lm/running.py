"""What `python -m experiments.mogrifier_lm` does once its flags are read."""

from __future__ import annotations

import dataclasses
import functools

from absl import flags

from experiments.kit import recurrent_config as configs
from experiments.kit import run_flags
from experiments.kit.run_list import Run, run_all
from experiments.kit.run_settings import settings_of
from experiments.mogrifier_lm import (
    evaluating,
    projection,
    report,
    training,
    ways_report,
)
from experiments.mogrifier_lm.presets import PRESETS
from experiments.mogrifier_lm.studies import STUDIES
from rlm_tf.command_line import flags as config_flags
from rlm_tf.data import load_corpus
from rlm_tf.serving import check_export_path

FLAGS = flags.FLAGS


def main() -> None:
    """Runs what is not done yet, then writes table and figure."""
    chosen = _configs()
    for config in chosen.values():
        configs.check_config(config)
    if FLAGS.export:
        check_export_path(FLAGS.export, overwrite=True)
    if FLAGS.project_steps:
        _project(chosen)
    else:
        _train_all(chosen)


def _train_all(chosen: dict[str, configs.RunConfig]) -> None:
    corpora = {
        name: load_corpus(name, FLAGS.data_dir)
        for name in {config.corpus for config in chosen.values()}
    }
    output, results = run_flags.folders(FLAGS.study)
    run_flags.check_exportable(output, results, list(chosen)[-1])
    runs = [
        Run(
            name,
            settings_of(config, corpora[config.corpus]),
            functools.partial(
                training.prepare, config, corpora[config.corpus], FLAGS.strategy
            ),
            functools.partial(
                training.train, checkpoint_seconds=FLAGS.checkpoint_seconds
            ),
            report.NEEDS,
        )
        for name, config in chosen.items()
    ]
    rows = run_all(runs, output, results, FLAGS.resume)
    if FLAGS.mc_samples:
        settings = evaluating.Settings(FLAGS.mc_samples, FLAGS.dynamic_mc_samples)
        rows = [
            evaluating.add_ways(
                results,
                name,
                output / name,
                corpora[config.corpus],
                settings,
            )
            for name, config in chosen.items()
        ]
    parts = [report.results_table(rows), ways_report.ways_table(rows)]
    text = "\n\n".join(filter(None, parts))
    output.mkdir(parents=True, exist_ok=True)
    (output / "table.md").write_text(text + "\n", "utf-8")
    report.results_figure(rows, output / "results.png")
    print(f"\n{text}\n\n{output}", flush=True)
    if FLAGS.export:
        run_flags.export(output / runs[-1].name)


def _project(chosen: dict[str, configs.RunConfig]) -> None:
    found = {}
    for name, config in chosen.items():
        try:
            corpus = load_corpus(config.corpus, FLAGS.data_dir)
        except FileNotFoundError:
            if config.corpus not in projection.STAND_INS:
                raise
            print(f"{name}: {config.corpus} is missing; drawn characters, as many")
            corpus = projection.stand_in(config.corpus)
        found[name] = projection.project(config, corpus, FLAGS.project_steps)
        hours, epochs = found[name]["hours_of_all_epochs"], found[name]["epochs"]
        print(f"{name}: {hours:,.1f} h for {epochs} epochs", flush=True)
    run_flags.write_row("projection", found)


def _configs() -> dict[str, configs.RunConfig]:
    seeds = run_flags.seeds()
    if FLAGS.only and not FLAGS.study:
        raise ValueError("--only chooses runs of a study; give --study, too.")
    if FLAGS["dynamic_mc_samples"].present and not FLAGS.mc_samples:
        raise ValueError("--dynamic_mc_samples needs --mc_samples.")
    if FLAGS.study:
        run_flags.refuse_settings_beside_study(configs.RunConfig, ("preset",))
        chosen = STUDIES[FLAGS.study](seeds, run_flags.folders()[1])
    else:
        config = configs.without_idle(
            config_flags.config_from_flags(PRESETS[FLAGS.preset]),
            config_flags.given_flags(configs.RunConfig),
        )
        chosen = {
            f"{FLAGS.preset}-{config.cell_name}-seed{seed}": dataclasses.replace(
                config, seed=seed
            )
            for seed in seeds
        }
    return run_flags.runs_like(chosen, FLAGS.only)

"""Trains recurrent language models: LSTM, Mogrifier, RLSTM and others, regularised.

    python -m experiments.mogrifier_lm --preset=small --output_dir=runs/mogrifier
    python -m experiments.mogrifier_lm --preset=small --cell=rlstm --rounds=0
    python -m experiments.mogrifier_lm --preset=paper4-ptb-mogrifier --data_dir=DATA
    python -m experiments.mogrifier_lm --study=trials --data_dir=DATA

Presets `paper-...` are the tuned settings of Melis et al. (2020), `paper4-...` those of
chapter 4 of Melis (2023); `--project_steps=5` tells how many hours they would take.
Every run writes its own folder and one row of results; a run whose row exists is
skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib

from absl import flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

from experiments import run_files, run_flags  # noqa: E402
from experiments.mogrifier import config as configs  # noqa: E402
from experiments.mogrifier import (  # noqa: E402
    evaluating,
    projection,
    report,
    training,
)
from experiments.mogrifier.presets import PRESETS  # noqa: E402
from experiments.mogrifier.studies import STUDIES  # noqa: E402
from experiments.run_list import Run, run_all  # noqa: E402
from experiments.run_settings import settings_of  # noqa: E402
from rlm_tf.data import load_corpus  # noqa: E402
from rlm_tf.serving import check_export_path  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_enum("preset", "small", sorted(PRESETS), "Settings to start from.")
flags.DEFINE_enum("study", None, sorted(STUDIES), "A list of runs.")
flags.DEFINE_list(
    "only", [], "Of a study, only runs whose name is like one of these: lstm-*,*-seed2."
)
flags.DEFINE_integer(
    "mc_samples",
    0,
    "Evaluate the model of each run dynamically and with so many dropout masks, too.",
    lower_bound=0,
)
flags.DEFINE_integer(
    "dynamic_mc_samples",
    4,
    "How many where every mask has weights of its own that follow the text.",
    lower_bound=1,
)
run_flags.define_run_flags("mogrifier_lm")
config_flags.define_flags(configs.RunConfig, without=("seed",))


def main(arguments: list[str]) -> None:
    """Runs what is not done yet, then writes table and figure."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
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
                results / f"{name}.json",
                output / name,
                corpora[config.corpus],
                settings,
            )
            for name, config in chosen.items()
        ]
    parts = [report.results_table(rows), report.ways_table(rows)]
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
    path = pathlib.Path(FLAGS.results_dir or FLAGS.output_dir) / "projection.json"
    run_files.write_json(path, found)
    print(path)


def _configs() -> dict[str, configs.RunConfig]:
    seeds = run_flags.seeds()
    if FLAGS.only and not FLAGS.study:
        raise ValueError("--only chooses runs of a study; give --study, too.")
    if FLAGS["dynamic_mc_samples"].present and not FLAGS.mc_samples:
        raise ValueError("--dynamic_mc_samples needs --mc_samples.")
    if FLAGS.study:
        run_flags.refuse_settings_beside_study(configs.RunConfig, ("preset",))
        rows = run_flags.folders()[1]
        chosen = STUDIES[FLAGS.study](seeds, rows)
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


def run() -> None:
    """Entry point of `python -m experiments.mogrifier_lm`."""
    config_flags.start(main)


if __name__ == "__main__":
    run()

"""What `python -m experiments.imm_lm` does once its flags are read."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

from absl import flags

from experiments.imm_lm import config as configs
from experiments.imm_lm import n_grams, projection, report, training
from experiments.imm_lm.curves import learning_curves
from experiments.imm_lm.studies import STUDIES, Run
from experiments.kit import run_flags, run_list
from experiments.kit.run_settings import settings_of
from rlm_tf.command_line import flags as config_flags
from rlm_tf.data import load_corpus
from rlm_tf.serving import check_export_path

FLAGS = flags.FLAGS


def main() -> None:
    """Runs what is not done yet, then writes table and figure."""
    if FLAGS.project_steps:
        _project()
    elif FLAGS.n_grams:
        _score_n_grams()
    else:
        _train_all()


def _train_all() -> None:
    runs = _runs()
    corpora = {
        name: load_corpus(name, FLAGS.data_dir)
        for name in {run.config.corpus for run in runs}
    }
    output, results = run_flags.folders(FLAGS.study)
    run_flags.check_exportable(output, results, runs[-1].name)
    rows = run_list.run_all(
        [
            run_list.Run(
                run.name,
                settings_of(run.config, corpora[run.config.corpus]),
                functools.partial(
                    training.prepare,
                    run.config,
                    corpora[run.config.corpus],
                    FLAGS.strategy,
                ),
                functools.partial(
                    training.train, checkpoint_seconds=FLAGS.checkpoint_seconds
                ),
                report.NEEDS,
            )
            for run in runs
        ],
        output,
        results,
        FLAGS.resume,
    )
    _report(rows, output)
    if FLAGS.export:
        run_flags.export(output / runs[-1].name)


def _runs() -> list[Run]:
    seeds = run_flags.seeds()
    if FLAGS.study:
        if len(seeds) > 1 and FLAGS.study != "main":
            raise ValueError(
                f"--study={FLAGS.study} has one seed, found --seeds="
                f"{','.join(map(str, seeds))}."
            )
        run_flags.refuse_settings_beside_study(configs.RunConfig, ("preset", "arms"))
        runs = STUDIES[FLAGS.study](seeds)
        runs = [run for run in runs if FLAGS.only is None or FLAGS.only in run.name]
    else:
        runs = _runs_of_arms(seeds)
    if not runs:
        raise ValueError("--only, --arms or --seeds leave no run.")
    for run in runs:
        configs.check_config(run.config)
    if FLAGS.export:
        check_export_path(FLAGS.export, overwrite=True)
    if FLAGS.export and runs[-1].config.arm == "noising-blank":
        raise ValueError(
            "--export cannot write a noising-blank model, which has a symbol more than "
            "the vocabulary; put another arm last."
        )
    return runs


def _runs_of_arms(seeds: list[int]) -> list[Run]:
    preset = config_flags.config_from_flags(configs.PRESETS[FLAGS.preset])
    arms = FLAGS.arms
    if FLAGS["arm"].present and FLAGS["arms"].present:
        raise ValueError("give --arm or --arms, not both.")
    unknown = [arm for arm in arms if arm not in configs.ARMS]
    if unknown:
        raise ValueError(
            f"--arms must be some of {', '.join(configs.ARMS)}; found "
            f"{', '.join(map(repr, unknown))}."
        )
    if FLAGS["arm"].present or (FLAGS.preset == "paper" and not FLAGS["arms"].present):
        arms = [preset.arm]
    chosen = [
        dataclasses.replace(preset, arm=arm, seed=seed)
        for arm in arms
        for seed in seeds
    ]
    return [Run(config.name, config) for config in chosen]


def _report(rows: list[report.Row], output: pathlib.Path) -> None:
    corpus = rows[0]["corpus"]
    amounts = sorted({row["corpus"]["train_tokens"] for row in rows})
    title = f"{corpus['name']}: {', '.join(f'{n:,}' for n in amounts)} training tokens"
    table = report.perplexity_table(rows)
    induced = report.induced_table(rows)
    text = (
        f"{title}\n\n{table}\n\nInduced models (short context: one word)\n\n{induced}\n"
    )
    output.mkdir(parents=True, exist_ok=True)
    (output / "table.md").write_text(text, "utf-8")
    figure = output / "learning_curves.png"
    drawn = learning_curves(rows, figure, title)
    print(f"\n{text}\n{output / 'table.md'}", flush=True)
    if drawn:
        print(figure, flush=True)


def _score_n_grams() -> None:
    preset = config_flags.config_from_flags(configs.PRESETS[FLAGS.preset])
    row = n_grams.measure(load_corpus(preset.corpus, FLAGS.data_dir))
    print(n_grams.n_grams_table(row))
    run_flags.write_row("n_grams", row)


def _project() -> None:
    preset = config_flags.config_from_flags(configs.PRESETS[FLAGS.preset])
    configs.check_config(preset)
    corpus = load_corpus(preset.corpus, FLAGS.data_dir)
    inputs = projection.prepare(preset, corpus, FLAGS.project_steps)
    row = projection.project(preset, inputs, FLAGS.project_steps)
    for kind, hours in row["hours_of_all_epochs"].items():
        print(f"{kind}: {hours:,.1f} h for {preset.epochs} epochs", flush=True)
    run_flags.write_row("projection", row)

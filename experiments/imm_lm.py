"""Trains language models with and without induced model matching, and compares them.

    python -m experiments.imm_lm --preset=small --output_dir=runs/demo
    python -m experiments.imm_lm --preset=paper --data_dir=DATA --output_dir=runs/paper
    python -m experiments.imm_lm --study=main --data_dir=DATA --output_dir=runs/imm_lm

Interpolation with the n-gram, (1 - mu) Q + mu P_hat, is an arm, and every row has it.

Every run (an arm and a seed) writes its own folder and one row of results; a run whose
row exists is skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib

from absl import flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

from experiments import run_files, run_flags, run_list  # noqa: E402
from experiments.imm import config as configs  # noqa: E402
from experiments.imm import projection, report, training  # noqa: E402
from experiments.imm.studies import STUDIES, Run  # noqa: E402
from experiments.run_settings import settings_of  # noqa: E402
from rlm_tf.data import load_corpus  # noqa: E402
from rlm_tf.serving import check_export_path  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_enum("preset", "small", sorted(configs.PRESETS), "Settings to start from.")
flags.DEFINE_list("arms", ["none", "imm-in-batch"], "Comma-separated arms to compare.")
flags.DEFINE_enum("study", None, sorted(STUDIES), "A list of runs instead of --arms.")
flags.DEFINE_string("only", None, "Of a study, only runs whose name contains this.")
run_flags.define_run_flags(
    "imm_lm", seeds="Comma-separated seeds, one run each; of studies, only `main`."
)
config_flags.define_flags(configs.RunConfig, without=("seed",))


def main(arguments: list[str]) -> None:
    """Runs what is not done yet, then writes table and figure."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
        if FLAGS.project_steps:
            _project()
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
    drawn = report.learning_curves(rows, figure, title)
    print(f"\n{text}\n{output / 'table.md'}", flush=True)
    if drawn:
        print(figure, flush=True)


def _project() -> None:
    preset = config_flags.config_from_flags(configs.PRESETS[FLAGS.preset])
    configs.check_config(preset)
    corpus = load_corpus(preset.corpus, FLAGS.data_dir)
    inputs = projection.prepare(preset, corpus, FLAGS.project_steps)
    row = projection.project(preset, inputs, FLAGS.project_steps)
    path = pathlib.Path(FLAGS.results_dir or FLAGS.output_dir) / "projection.json"
    run_files.write_json(path, row)
    for kind, hours in row["hours_of_all_epochs"].items():
        print(f"{kind}: {hours:,.1f} h for {preset.epochs} epochs", flush=True)
    print(path)


def run() -> None:
    """Entry point of `python -m experiments.imm_lm`."""
    config_flags.start(main)


if __name__ == "__main__":
    run()

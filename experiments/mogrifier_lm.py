"""Trains recurrent language models: LSTM, Mogrifier, RLSTM and others, regularised.

    python -m experiments.mogrifier_lm --preset=small --output_dir=runs/mogrifier
    python -m experiments.mogrifier_lm --preset=small --cell=rlstm --rounds=5 --rank=40
    python -m experiments.mogrifier_lm --study=trials --data_dir=DATA

Every run writes its own folder and one row of results; a run whose row exists is
skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib

from absl import app, flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

from experiments.mogrifier import config as configs  # noqa: E402
from experiments.mogrifier import training  # noqa: E402
from experiments.mogrifier.studies import STUDIES  # noqa: E402
from experiments.run_list import Run, run_all  # noqa: E402
from rlm_tf.data import Corpus, load_corpus  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder of the corpora [RLM_DATA_DIR].")
flags.DEFINE_string(
    "output_dir", "runs/mogrifier_lm", "Folder of everything that is written."
)
flags.DEFINE_string("results_dir", None, "Folder of the rows [OUTPUT_DIR/results].")
flags.DEFINE_list("seeds", ["1"], "Comma-separated seeds, one run each.")
flags.DEFINE_enum("study", None, sorted(STUDIES), "A list of runs.")
flags.DEFINE_list("only", [], "Of a study, only runs whose name contains one of these.")
flags.DEFINE_boolean(
    "resume", True, "Skip finished runs and go on with killed ones; else start anew."
)
flags.DEFINE_float(
    "checkpoint_seconds",
    120.0,
    "Within an epoch, a checkpoint is written when the last one is this old.",
    lower_bound=0.0,
)
flags.DEFINE_enum(
    "strategy", "default", ["default", "one_device", "mirrored"], "tf.distribute."
)
config_flags.define_flags(configs.RunConfig, without=("seed",))


def main(arguments: list[str]) -> None:
    """Runs what is not done yet."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
        _train_all()


def _train_all() -> None:
    chosen = _configs()
    for config in chosen.values():
        configs.check_config(config)
    corpora = {
        name: load_corpus(name, FLAGS.data_dir)
        for name in {config.corpus for config in chosen.values()}
    }
    output = pathlib.Path(FLAGS.output_dir)
    results = pathlib.Path(FLAGS.results_dir or output / "results")
    if FLAGS.study:
        output, results = output / FLAGS.study, results / FLAGS.study
    runs = [
        Run(
            name,
            training.settings_of(config, corpora[config.corpus]),
            functools.partial(_train, config, corpora[config.corpus]),
            training.clear,
        )
        for name, config in chosen.items()
    ]
    run_all(runs, output, results, FLAGS.resume)


def _train(
    config: configs.RunConfig, corpus: Corpus, folder: pathlib.Path
) -> dict[str, object]:
    prepared = training.prepare(config, corpus, FLAGS.strategy)
    return training.train(prepared, folder, FLAGS.checkpoint_seconds)


def _configs() -> dict[str, configs.RunConfig]:
    seeds = [config_flags.read_as("seeds", seed, int) for seed in FLAGS.seeds]
    if FLAGS.study:
        chosen = STUDIES[FLAGS.study](seeds)
        if FLAGS.only:
            chosen = {
                name: config
                for name, config in chosen.items()
                if any(part in name for part in FLAGS.only)
            }
    else:
        config = config_flags.config_from_flags(configs.RunConfig())
        chosen = {
            f"{config.cell}-seed{seed}": dataclasses.replace(config, seed=seed)
            for seed in seeds
        }
    if not chosen:
        raise ValueError("--only or --seeds leave no run.")
    return chosen


def run() -> None:
    """Entry point of `python -m experiments.mogrifier_lm`."""
    app.run(main)


if __name__ == "__main__":
    run()

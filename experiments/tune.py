"""Tunes a recurrent language model with Gaussian-process bandits.

    python -m experiments.tune --space=mogrifier --preset=small --trials=20

`--space` is one of the published search spaces; what it does not name comes from the
preset and the flags, as in `experiments.mogrifier_lm`. All trials have one budget of
parameters. A search that was killed goes on, its running trial included (--resume).
"""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
from typing import Any

from absl import app, flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

import keras  # noqa: E402

from experiments.imm.config import check_same_settings  # noqa: E402
from experiments.imm.row import read_row  # noqa: E402
from experiments.mogrifier import config as configs  # noqa: E402
from experiments.mogrifier import training, tuning  # noqa: E402
from experiments.mogrifier.presets import PRESETS  # noqa: E402
from experiments.mogrifier.search_spaces import SPACES  # noqa: E402
from experiments.run_files import write_json  # noqa: E402
from rlm_tf.data import load_corpus  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_enum("preset", "small", sorted(PRESETS), "Settings to start from.")
flags.DEFINE_enum("space", "mogrifier", sorted(SPACES), "What is tuned.")
flags.DEFINE_integer("trials", 20, "Trials in all.", lower_bound=1)
flags.DEFINE_integer("initial", 8, "Random trials at the beginning.", lower_bound=1)
flags.DEFINE_string("data_dir", None, "Folder of the corpora [RLM_DATA_DIR].")
flags.DEFINE_string("output_dir", "runs/tune", "Folder of everything that is written.")
flags.DEFINE_list("seeds", ["1"], "One seed, of training and of the tuner's choices.")
flags.DEFINE_boolean(
    "resume", True, "Go on with the search that is there; else start anew."
)
flags.DEFINE_enum(
    "strategy", "default", ["default", "one_device", "mirrored"], "tf.distribute."
)
config_flags.define_flags(configs.RunConfig, without=("seed",))


def main(arguments: list[str]) -> None:
    """Runs the trials that are missing, then draws and lists them."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
        _search()


def _search() -> None:
    seeds = [config_flags.read_as("seeds", seed, int) for seed in FLAGS.seeds]
    if len(seeds) != 1:
        raise ValueError(f"--seeds must name one integer, found {len(seeds)}.")
    space = SPACES[FLAGS.space]
    both = sorted(set(config_flags.given_flags(configs.RunConfig)) & set(space))
    if both:
        raise ValueError(
            f"--space={FLAGS.space} tunes what is given: {', '.join(both)}."
        )
    base = dataclasses.replace(
        config_flags.config_from_flags(PRESETS[FLAGS.preset]), seed=seeds[0]
    )
    configs.check_config(base)
    corpus = load_corpus(base.corpus, FLAGS.data_dir)
    output = pathlib.Path(FLAGS.output_dir)
    if not FLAGS.resume:
        shutil.rmtree(output / "search", ignore_errors=True)
    _check_same(output, base)

    def train(config: configs.RunConfig, folder: pathlib.Path) -> dict[str, Any]:
        prepared = training.prepare(config, corpus, FLAGS.strategy)
        row = training.train(prepared, folder)
        keras.backend.clear_session()
        return row

    tuner = tuning.Tuner(
        base,
        space,
        train,
        output,
        trials=FLAGS.trials,
        initial=min(FLAGS.initial, FLAGS.trials),
        seed=seeds[0],
    )
    tuner.search()
    rows = tuning.rows_in(output)
    if not rows:
        raise ValueError(f"{output}: no trial was finished.")
    text = tuning.trials_table(rows)
    (output / "trials.md").write_text(text + "\n", "utf-8")
    tuning.parallel_coordinates(rows, space, output / "parallel_coordinates.png")
    print(f"\n{text}\n\n{output}", flush=True)


def _check_same(output: pathlib.Path, base: configs.RunConfig) -> None:
    """Raises ValueError if the search there is around other settings or in another."""
    wanted = {**dataclasses.asdict(base), "space": FLAGS.space, "text_sha256": None}
    path = output / "search.json"
    if path.exists() and (output / "search").exists():
        check_same_settings(
            read_row(path), wanted, str(path), "another --output_dir, or --noresume"
        )
    write_json(path, wanted)


def run() -> None:
    """Entry point of `python -m experiments.tune`."""
    app.run(main)


if __name__ == "__main__":
    run()

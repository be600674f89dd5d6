"""What `python -m experiments.tune` does once its flags are read."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from typing import Any

import keras
from absl import flags

from experiments.kit import recurrent_config as configs
from experiments.kit import run_workers, tuning
from experiments.kit.folders import remove
from experiments.kit.ranges import Space
from experiments.kit.run_settings import settings_of
from experiments.mogrifier_lm import evaluating, training
from experiments.mogrifier_lm.presets import PRESETS
from experiments.mogrifier_lm.search_spaces import DYNAMIC_SPACES, FIXED, SPACES
from rlm_tf.command_line import flags as config_flags
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.same_settings import check_same_settings
from rlm_tf.data import load_corpus
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.training import TrainingDivergedError, released_graphs

FLAGS = flags.FLAGS


def main() -> None:
    """Runs the trials that are missing, then draws and lists them."""
    with run_workers.held(pathlib.Path(FLAGS.output_dir) / "search"):
        _search()


def _search() -> None:
    seeds = [config_flags.read_as("seeds", seed, int) for seed in FLAGS.seeds]
    if len(seeds) != 1:
        raise ValueError(f"--seeds must name one integer, found {len(seeds)}.")
    output = pathlib.Path(FLAGS.output_dir)
    dynamic = FLAGS.space in DYNAMIC_SPACES
    space = {**SPACES, **DYNAMIC_SPACES}[FLAGS.space]
    if not FLAGS.resume and run_workers.workers().is_chief:
        remove(output / "search")
    run = _evaluations(output) if dynamic else _trainings(output, space, seeds[0])
    tuner = tuning.Tuner(
        space,
        run_workers.led(run),
        output,
        trials=FLAGS.trials,
        initial=min(FLAGS.initial, FLAGS.trials),
        seed=seeds[0],
    )
    tuner.search()
    run_workers.tell(None)
    rows = tuning.rows_in(output)
    if not rows:
        raise ValueError(f"{output}: no trial was finished.")
    text = tuning.trials_table(rows)
    (output / "trials.md").write_text(text + "\n", "utf-8")
    tuning.parallel_coordinates(rows, space, output / "parallel_coordinates.png")
    print(f"\n{text}\n\n{output}", flush=True)


def _trainings(output: pathlib.Path, space: Space, seed: int) -> tuning.Try:
    """Returns what trains a model with the values of a trial."""
    fixed = FIXED.get(FLAGS.space, {})
    both = sorted(
        set(config_flags.given_flags(configs.RunConfig)) & ({*space} | {*fixed})
    )
    if both:
        raise ValueError(
            f"--space={FLAGS.space} tunes what is given: --{', --'.join(both)}."
        )
    base = dataclasses.replace(
        config_flags.config_from_flags(PRESETS[FLAGS.preset]), seed=seed, **fixed
    )
    if FLAGS["run_dir"].present:
        raise ValueError(f"--space={FLAGS.space} trains; leave out --run_dir.")
    for end in ("low", "high"):
        values: dict[str, Any] = {
            name: int(getattr(where, end)) if where.integer else getattr(where, end)
            for name, where in space.items()
        }
        configs.check_config(_config_of(base, values))
    corpus = load_corpus(base.corpus, FLAGS.data_dir)
    # A mistake in what all trials share shows now, not in each of them.
    training.prepare(base, corpus, FLAGS.strategy)
    _check_same(output, settings_of(base, corpus))

    @released_graphs()
    def train(values: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
        config = _config_of(base, values)
        configs.check_config(config)
        prepared = training.prepare(config, corpus, FLAGS.strategy)
        try:
            row = training.train(prepared, folder)
        except TrainingDivergedError as error:
            print(f"{folder.parent.name}: {error}", flush=True)
            row = {"loss": math.inf}
        else:
            row["loss"] = math.log(row["perplexity"]["valid"])
        return row

    return train


def _config_of(base: configs.RunConfig, values: dict[str, Any]) -> configs.RunConfig:
    """Returns the settings of a trial; without rounds a Mogrifier's mean nothing."""
    return configs.without_idle(dataclasses.replace(base, **values))


def _evaluations(output: pathlib.Path) -> tuning.Try:
    """Returns what evaluates a model dynamically with the values of a trial."""
    given = config_flags.given_flags(configs.RunConfig)
    if given or FLAGS["preset"].present:
        raise ValueError(
            f"--space={FLAGS.space} takes the settings of --run_dir; leave out others."
        )
    if FLAGS.strategy != "default":
        raise ValueError(f"--space={FLAGS.space} trains nothing; leave out --strategy.")
    folder = pathlib.Path(FLAGS.run_dir or "")
    if not FLAGS.run_dir or not (folder / "model.keras").exists():
        raise ValueError(
            f"--space={FLAGS.space} needs --run_dir, the folder of a finished run with "
            f"model.keras; found {FLAGS.run_dir!r}."
        )
    settings = read_json(
        folder / "config.json", "use another --run_dir", ("corpus", "fraction")
    )
    corpus = load_corpus(settings["corpus"], FLAGS.data_dir)
    _check_same(output, settings)
    model = language_model_of(
        keras.models.load_model(folder / "model.keras", compile=False)
    )
    text = corpus.train[: int(len(corpus.train) * settings["fraction"])]
    return lambda values, _: {
        "loss": evaluating.dynamic_nats(model, corpus, text, **values)
    }


def _check_same(output: pathlib.Path, settings: dict[str, Any]) -> None:
    """Raises ValueError if the search there is around other settings or in another."""
    if not run_workers.workers().is_chief:
        return
    wanted = {**settings, "space": FLAGS.space}
    path = output / "search.json"
    if path.exists() and (output / "search").exists():
        check_same_settings(
            read_json(path, tuning.SEARCH_REMEDY),
            wanted,
            str(path),
            "another --output_dir, or --noresume",
        )
    write_json(path, wanted)

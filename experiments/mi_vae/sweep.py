"""Many points of one line, with settings drawn or chosen in the published ranges."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

from experiments.kit import run_workers, tuning
from experiments.kit.folders import remove
from experiments.kit.ranges import Range, Space
from experiments.kit.vae_config import VaeConfig, check_config
from experiments.mi_vae import training
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.same_settings import check_same_settings
from rlm_tf.data import Corpus
from rlm_tf.training import TrainingDivergedError, released_graphs

# Table 5.2. Alpha is tuned for the Rényi objective, too, says the published data.
_RATE: Space = {"learning_rate": Range(1e-4, 1e-2, log=True)}
_LAMBDA: Space = {"lambda_": Range(-0.05, 0.9999)}
_ALPHA: Space = {"alpha": Range(0.86, 16.0, log=True)}
_DROPOUT: Space = {
    "input_dropout": Range(0.0, 0.9),
    "state_dropout": Range(0.0, 0.8),
    "output_dropout": Range(0.0, 0.95),
}
_L2: Space = {"l2": Range(5e-6, 1e-3, log=True)}
_QUANTISED: Space = {
    "num_latents": Range(1, 8, integer=True),
    "num_categories": Range(2, 20, integer=True),
    "commitment": Range(0.01, 20.0, log=True),
    "decay": Range(0.9, 0.99999, log=True),
}


def space_of(config: VaeConfig, regularisation: str = "none") -> Space:
    """Returns what Table 5.2 tunes for a line.

    Args:
        config: Of the line.
        regularisation: `none` for the fit to training text, `dropout` or `l2`.

    Raises:
        ValueError: If dropout is asked for without a corpus.
    """
    space = dict(_RATE)
    if config.latents == "quantised":
        space |= _QUANTISED
    elif config.objective in ("kl", "renyi"):
        space |= _LAMBDA
    tilted = ("renyi", "power", "alpha_iwae")
    if config.objective in tilted and config.latents != "quantised":
        space |= _ALPHA
    if regularisation == "dropout":
        if not config.corpus:
            raise ValueError("--regularisation=dropout needs --corpus.")
        space |= _DROPOUT
    elif regularisation == "l2":
        space |= _L2
    return space


def search(
    config: VaeConfig,
    corpus: Corpus | None,
    space: Space,
    output: pathlib.Path,
    *,
    trials: int,
    initial: int,
    trade: float,
    strategy: str = "default",
    resume: bool = True,
) -> list[dict[str, Any]]:
    """Runs the trials that are missing, and returns the rows of all.

    What a trial minimises is its NLL minus `trade` times its usage of latents, on
    validation text if there is a corpus; all of them are points of one frontier.

    Args:
        config: What the trials share.
        corpus: Of sentences, or None.
        space: What is tuned.
        output: Folder of all that is written; a search that is there goes on.
        trials: In all.
        initial: Random ones before the Gaussian process chooses; `trials`: all.
        trade: Nats of NLL that a nat of usage is worth.
        strategy: Of `tf.distribute`.
        resume: Whether a search that is there goes on.

    Raises:
        ValueError: If settings are impossible, or the search there is another one.
    """
    is_chief = run_workers.workers().is_chief
    if not resume and is_chief:
        remove(output / "search")
    # A mistake in what all trials share shows now, not in each of them.
    some = dataclasses.replace(config, alpha=2.0 if "alpha" in space else config.alpha)
    check_config(some)
    shared = {
        **training.prepare(some, corpus, strategy).settings,
        "alpha": config.alpha,
    }
    wanted = {**shared, "space": {k: list(v) for k, v in space.items()}, "trade": trade}
    path = output / "search.json"
    if is_chief and path.exists() and (output / "search").exists():
        check_same_settings(
            read_json(path, tuning.SEARCH_REMEDY),
            wanted,
            str(path),
            "another --output_dir, or --noresume",
        )
    if is_chief:
        write_json(path, wanted)

    @released_graphs()
    def run(values: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
        own = dataclasses.replace(config, **values)
        try:
            row = training.train(training.prepare(own, corpus, strategy), folder)
        except TrainingDivergedError as error:
            print(f"{folder.parent.name}: {error}", flush=True)
            row = {"loss": float("inf")}
        else:
            found = row["evaluation"]["valid" if corpus else "train"]["per_token"]
            row["loss"] = found["nll"] - trade * found["usage"]
            row["name"] = folder.parent.name
        return row

    tuner = tuning.Tuner(
        space,
        run_workers.led(run),
        output,
        trials=trials,
        initial=min(initial, trials),
        seed=config.seed,
    )
    tuner.search()
    run_workers.tell(None)
    rows = tuning.rows_in(output)
    return [row for row in rows if "evaluation" in row]

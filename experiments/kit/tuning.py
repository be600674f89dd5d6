"""Tunes hyper-parameters with Gaussian-process bandits."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import keras_tuner
import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save, table
from experiments.kit.ranges import Range, Space
from rlm_tf.command_line.json_files import read_json, with_nulls, write_json

# Maps the values of a trial and its folder to its row of results, which has a `loss`.
Try = Callable[[dict[str, Any], pathlib.Path], dict[str, Any]]


# Nats a token of what diverged: a Gaussian process needs numbers of one size.
_VERY_BAD = 20.0
# Of a damaged search.json.
SEARCH_REMEDY = "use another --output_dir, or --noresume"


class Tuner(keras_tuner.Tuner):
    """Runs trials of a search space.

    Each keeps its row in its folder; a trial that was killed is run again. The
    objective is the loss in its row, nats a token, 20 where it is larger or no number.

    Args:
        space: What is tuned.
        run: See `Try`.
        folder: Of all that is written; a search that is there goes on.
        trials: Number of trials in all.
        initial: Random ones before the Gaussian process chooses.
        seed: Of the choices.
    """

    def __init__(
        self,
        space: Space,
        run: Try,
        folder: pathlib.Path,
        *,
        trials: int,
        initial: int,
        seed: int,
    ):
        self.space = space
        self.run = run
        oracle = keras_tuner.oracles.BayesianOptimizationOracle(
            objective=keras_tuner.Objective("loss", "min"),
            max_trials=trials,
            num_initial_points=initial,
            hyperparameters=hyperparameters(space),
            tune_new_entries=False,
            allow_new_entries=False,
            seed=seed,
        )
        super().__init__(
            oracle=oracle,
            hypermodel=None,
            directory=str(folder),
            project_name="search",
            overwrite=False,
        )

    def _populate_initial_space(self) -> None:
        """Does nothing: the space is given."""

    def run_trial(self, trial: Any, *args: Any, **kwargs: Any) -> dict[str, float]:
        values = settings_of(trial.hyperparameters.values, self.space)
        folder = pathlib.Path(self.get_trial_dir(trial.trial_id))
        row = self.run(values, folder / "run")
        if not row["loss"] < _VERY_BAD:
            row["loss"] = _VERY_BAD
        write_json(folder / "row.json", with_nulls({"values": values, **row}))
        return {"loss": row["loss"]}

    def load_model(self, trial: Any) -> Any:
        raise NotImplementedError("Models are in the folders of the trials.")


def suggested(
    space: Space,
    tried: Sequence[tuple[dict[str, Any], float]],
    *,
    initial: int,
    seed: int,
) -> dict[str, Any]:
    """Returns what is to be tried next, a function of the arguments alone.

    So a search whose trials are kept elsewhere goes on in another process.

    Args:
        space: What is tuned.
        tried: Values and losses of the trials before, in order.
        initial: Random ones before the Gaussian process chooses.
        seed: Of the choices.
    """
    oracle = keras_tuner.oracles.BayesianOptimizationOracle(
        objective=keras_tuner.Objective("loss", "min"),
        num_initial_points=initial,
        hyperparameters=hyperparameters(space),
        tune_new_entries=False,
        allow_new_entries=False,
        # The tuner counts its seed up from draw to draw: those of trials in a row, were
        # theirs near each other, would be the same numbers.
        seed=int(np.random.SeedSequence((seed, len(tried))).generate_state(1)[0]),
    )
    losses = np.array([min(loss, _VERY_BAD) for _, loss in tried])
    # What was not tried is 0 to the process: so is the mean of what was.
    scores = (losses - np.mean(losses)) / max(np.std(losses), 1e-9) if tried else losses
    for number, (values, _) in enumerate(tried):
        own = hyperparameters(space)
        own.values = {name: values[name] for name in space}
        trial = keras_tuner.engine.trial.Trial(own, str(number), "COMPLETED")
        trial.score = float(scores[number])
        oracle.trials[trial.trial_id] = trial
    found = oracle.populate_space(str(len(tried)))
    return settings_of(found["values"], space)


def hyperparameters(space: Space) -> keras_tuner.HyperParameters:
    """Returns a search space in the tuner's form."""
    found = keras_tuner.HyperParameters()
    for name, where in space.items():
        if where.integer:
            found.Int(name, int(where.low), int(where.high))
        else:
            sampling = "log" if where.log else "linear"
            found.Float(name, where.low, where.high, sampling=sampling)
    return found


def settings_of(values: dict[str, Any], space: Space) -> dict[str, Any]:
    """Returns the tuned fields of a configuration from a trial's values."""
    return {
        name: int(values[name]) if where.integer else float(values[name])
        for name, where in space.items()
    }


def rows_in(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Returns the rows of the trials that are done, best first."""
    rows = [
        read_json(path, "remove it", ("values", "loss"))
        for path in sorted((folder / "search").glob("trial_*/row.json"))
    ]
    return sorted(rows, key=lambda row: row["loss"])


# === Report ===


def trials_table(rows: Sequence[dict[str, Any]], most: int = 10) -> str:
    """Returns the best trials as a Markdown table."""
    names = list(rows[0]["values"])
    splits = list(rows[0].get("perplexity", {}))
    titles = ["loss, nats", *(f"{split} perplexity" for split in splits), *names]
    lines = []
    for row in rows[:most]:
        found = row.get("perplexity", {})
        lines.append(
            [
                f"{row['loss']:.4f}",
                *(f"{found[split]:.2f}" if found else "diverged" for split in splits),
                *(f"{row['values'][name]:.4g}" for name in names),
            ]
        )
    return table(titles, lines)


def parallel_coordinates(
    rows: Sequence[dict[str, Any]], space: Space, path: pathlib.Path
) -> None:
    """Draws every trial as a line over all hyper-parameters, as Figures 2.5 and 2.6.

    The best is red (there, settings near the best are), the others the darker the
    better; of what diverged there is no line, and of nothing else no figure.
    """
    rows = [row for row in rows if row["loss"] < _VERY_BAD]
    if not rows:
        return
    figure, axes = plt.subplots(
        figsize=(1.3 * len(space) + 2.5, 4.5), layout="constrained"
    )
    losses = np.array([row["loss"] for row in rows])
    span = max(losses.max() - losses.min(), 1e-9)
    for rank, row in reversed(list(enumerate(rows))):
        heights = [
            position(row["values"][name], where) for name, where in space.items()
        ]
        heights.append((row["loss"] - losses.min()) / span)
        grey = 0.2 + 0.7 * (row["loss"] - losses.min()) / span
        colour = "#d62728" if rank == 0 else str(grey)
        axes.plot(heights, color=colour, lw=2 if rank == 0 else 0.8)
    names = [*space, "loss"]
    for index, where in enumerate(space.values()):
        for height, value in ((-0.06, where.low), (1.03, where.high)):
            axes.text(index, height, f"{value:.3g}", ha="center", fontsize=7)
    for height, value in ((-0.06, losses.min()), (1.03, losses.max())):
        axes.text(len(space), height, f"{value:.3f}", ha="center", fontsize=7)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axes.set_yticks([])
    axes.set_ylim(-0.1, 1.1)
    save(figure, path)


def position(value: float, where: Range) -> float:
    """Returns where in its range a value lies, from 0 to 1, on the range's scale."""
    if where.log:
        low, high, value = np.log([where.low, where.high, value])
    else:
        low, high = where.low, where.high
    return float((value - low) / (high - low))

"""Finds ELECTRA's generator and both rates, one after the other (appendix A.3).

    python -m experiments.electra.road_map --preset=small --data_dir=DATA

The largest generator comes first; then the largest rate of the detector at which
training does not diverge, the generator's being fixed; then the generator's best rate,
which is taken to have one maximum. What counts is F1 on the validation text that a
masked language model, trained before with the same --output_dir, has corrupted. Every
run has a row, so that a search that was killed goes on where it stood.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from experiments.electra.chosen_rows import finds_something
from experiments.electra.config import PRESETS as STUDIES
from experiments.electra.config import ElectraConfig
from experiments.kit.main import Binary, start
from rlm_tf.command_line.flags import config_from_flags, setting
from rlm_tf.command_line.wording import number_of

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class RoadMapConfig(ElectraConfig):
    """One arm with an optimiser for each network, and what is searched."""

    generator_rates: tuple[float, ...] = setting(
        (2.5e-4, 3.5e-4, 5e-4, 7e-4, 1e-3, 1.4e-3, 2e-3, 2.8e-3),
        "Rates of the generator that are searched, in order.",
    )
    least_f1: float = setting(
        0.02, "A detector that is below this has found nothing, whatever its loss."
    )

    def check(self) -> None:
        """Raises ValueError for settings that no search can have."""
        super().check()
        if self.arms != ("decoupled",):
            raise ValueError(
                "--arms must be decoupled: with one optimiser there is one rate."
            )
        for name in ("rates", "generator_rates"):
            given = getattr(self, name)
            if not given or list(given) != sorted({*given}):
                raise ValueError(f"--{name} must be rates in rising order.")
        if not 0 <= self.least_f1 < 1:
            raise ValueError(f"--least_f1 must lie in [0, 1), found {self.least_f1}.")
        if min(self.generator_rates) <= 0:
            raise ValueError("--generator_rates must be positive numbers.")
        if len(self.weights) != 1 or not self.standalone:
            raise ValueError("--weights must be one number, and --standalone a model.")


def _searched(study: str, **change: Any) -> RoadMapConfig:
    """Returns the settings of a study's preset as those of a search."""
    base = STUDIES[study]
    fields = {f.name: getattr(base, f.name) for f in dataclasses.fields(base)}
    return RoadMapConfig(**{**fields, "arms": ("decoupled",), **change})


PRESETS = {
    "small": _searched(
        "rates",
        stage="road-map",
        # After 800 steps detectors have hardly begun, at any rate.
        steps=3000,
        looks=20,
        generators=(1, 2, 4),
        rates=(5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2),
    ),
    "smoke": _searched(
        "smoke",
        stage="road-map",
        rates=(1e-3, 2e-3),
        generator_rates=(5e-4, 1e-3, 2e-3),
    ),
}


def largest_stable(rates: Sequence[float], is_stable: Callable[[float], bool]) -> float:
    """Returns the last of rising rates before the first that is not stable.

    Raises:
        ValueError: If the first is not.
    """
    stable: float | None = None
    for rate in rates:
        if not is_stable(rate):
            break
        stable = rate
    if stable is None:
        raise ValueError(
            f"training diverges at the smallest of --rates, {rates[0]:g}, already."
        )
    return stable


def best_of_unimodal(values: Sequence[float], score: Callable[[float], float]) -> float:
    """Returns the value with the highest score, by bisection.

    Scores rise up to it and fall behind it; each is asked at most once.
    """
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in known:
            known[place] = score(values[place])
        return known[place]

    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if at(middle) < at(middle + 1):
            low = middle + 1
        else:
            high = middle
    return values[low]


def search(
    config: RoadMapConfig, run: Callable[[int, float, float], dict[str, Any]]
) -> dict[str, Any]:
    """Returns the chosen generator and rates, its F1, and the best that was seen.

    Args:
        config: What is searched.
        run: Maps layers of the generator, the detector's rate and the generator's to a
            row with `diverged`, or with the scores on standalone text.
    """
    generator = max(config.generators)
    found_before = False
    seen: dict[tuple[float, float], float] = {}

    def tried(rate: float, generator_rate: float) -> dict[str, Any]:
        row = run(generator, rate, generator_rate)
        if "diverged" not in row:
            seen[rate, generator_rate] = _f1(row)
        return row

    def is_stable(rate: float) -> bool:
        nonlocal found_before
        row = tried(rate, config.generator_rate)
        print(f"detector's rate {rate:g}: {_said(row)}", flush=True)
        if "diverged" in row:
            return False
        # One that finds nothing any more is not stable either.
        finds = finds_something(row) and _f1(row) >= config.least_f1
        is_lost = found_before and not finds
        found_before |= finds
        return not is_lost

    rate = largest_stable(config.rates, is_stable)

    def f1(generator_rate: float) -> float:
        row = tried(rate, generator_rate)
        print(f"generator's rate {generator_rate:g}: {_said(row)}", flush=True)
        return -1.0 if "diverged" in row else _f1(row)

    generator_rate = best_of_unimodal(config.generator_rates, f1)
    row = tried(rate, generator_rate)
    best = max(seen, key=lambda rates: seen[rates], default=None)
    return {
        "generator": generator,
        "rate": rate,
        "generator_rate": generator_rate,
        "f1": None if "diverged" in row else _f1(row),
        "best_seen": None if best is None else [*best, seen[best]],
    }


def outcome(found: dict[str, Any], least_f1: float) -> str:
    """Returns what a search has found, for a person."""
    f1 = "" if found["f1"] is None else f", F1 {found['f1']:.3f}"
    lines = [
        f"generator of {number_of('layer', found['generator'])}, detector's rate "
        f"{found['rate']:g}, generator's {found['generator_rate']:g}{f1}"
    ]
    if not (found["f1"] or 0.0) >= least_f1:
        lines.append(
            f"it has found nothing: no F1 of {least_f1:g} (--least_f1); train longer "
            "(--steps)"
        )
    if found["best_seen"] and found["best_seen"][2] > (found["f1"] or 0.0):
        rate, generator_rate, best = found["best_seen"]
        lines.append(
            f"better was seen: detector's rate {rate:g}, generator's "
            f"{generator_rate:g}, F1 {best:.3f}"
        )
    return "\n".join(lines)


def _f1(row: dict[str, Any]) -> float:
    return float(next(iter(row["standalone"].values()))["valid"]["f1"])


def _said(row: dict[str, Any]) -> str:
    return "diverges" if "diverged" in row else f"F1 {_f1(row):.3f}"


def _define() -> None:
    flags.DEFINE_string("data_dir", None, "Folder of the corpora [RLM_DATA_DIR].")
    flags.DEFINE_string(
        "output_dir", "runs/electra", "Folder of everything that is written."
    )
    flags.DEFINE_string("results_dir", None, "Folder of the rows [OUTPUT_DIR/results].")
    flags.DEFINE_list("seeds", ["1"], "The seed.")
    flags.DEFINE_boolean("resume", True, "Skip runs that have a row; else start anew.")


def _main() -> None:
    from experiments.electra.pretraining import runs_of
    from experiments.kit import run_flags
    from experiments.kit.run_list import run_all
    from rlm_tf.command_line.json_files import write_json

    config = config_from_flags(PRESETS[FLAGS.preset])
    config.check()
    if FLAGS.data_dir is not None:
        os.environ["RLM_DATA_DIR"] = FLAGS.data_dir
    seeds = run_flags.seeds()
    if len(seeds) > 1:
        raise ValueError(f"--seeds must be one seed here; found {len(seeds)}.")
    output, results = run_flags.folders()
    names = {field.name for field in dataclasses.fields(ElectraConfig)}
    plain = {name: getattr(config, name) for name in names}
    made: dict[str, dict[str, Any]] = {}

    def run(generator: int, rate: float, generator_rate: float) -> dict[str, Any]:
        chosen = {
            "generators": (generator,),
            "rates": (rate,),
            "generator_rate": generator_rate,
        }
        (one,) = runs_of(ElectraConfig(**{**plain, **chosen}), seeds)
        if one.name not in made:
            (made[one.name],) = run_all([one], output, results, FLAGS.resume)
        return made[one.name]

    found = search(config, run)
    output.mkdir(parents=True, exist_ok=True)
    write_json(output / "road_map.json", {**found, "runs": [*made]})
    print(
        f"\n{outcome(found, config.least_f1)}\n{output / 'road_map.json'}", flush=True
    )


if __name__ == "__main__":
    start(Binary("electra.road_map", __doc__, _main, PRESETS, define=_define))

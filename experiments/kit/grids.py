"""Studies that are lists of runs: each with a row, a folder, and a command of its own.

A binary names its presets and what returns its runs; this module defines its flags and
runs it. What computes and reports is named `module:function`, imported when needed.
"""

from __future__ import annotations

import dataclasses
import os
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from absl import flags

from experiments.kit.main import Binary, start
from rlm_tf.command_line.flags import config_from_flags, flag_text

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class Grid:
    """What a binary does.

    Attributes:
        name: Of the binary, and of its folders.
        presets: Settings by name, instances of one frozen dataclass with `check()`.
        runs: Returns the runs of settings and seeds.
        report: Draws the figures of rows into a folder, and returns their tables.
        seeds: By default.
        reads_data: Whether it has a flag for the folder of the corpora.
    """

    name: str
    presets: Mapping[str, Any]
    runs: str = "training:runs_of"
    report: str = "report:report"
    seeds: tuple[int, ...] = (1,)
    reads_data: bool = False

    def function(self, name: str) -> Callable[..., Any]:
        """Returns what `module:function` in the folder of the study names."""
        return pkgutil.resolve_name(f"experiments.{self.name}.{name}")


def run_grid(grid: Grid, about: str) -> None:
    """Runs a study whose flags are on the command line; does not return.

    Args:
        grid: The study.
        about: What it is for, as `--help` says it.
    """

    def define() -> None:
        if grid.reads_data:
            flags.DEFINE_string(
                "data_dir", None, "Folder of the corpora [RLM_DATA_DIR]."
            )
        flags.DEFINE_string(
            "output_dir", f"runs/{grid.name}", "Folder of everything that is written."
        )
        flags.DEFINE_string(
            "results_dir", None, "Folder of the rows [OUTPUT_DIR/results]."
        )
        flags.DEFINE_list(
            "seeds", [*map(str, grid.seeds)], "Comma-separated seeds, one run each."
        )
        flags.DEFINE_list(
            "only", [], "Patterns of names of runs, such as *-seed1; none: all."
        )
        flags.DEFINE_boolean(
            "resume",
            True,
            "Skip finished runs and go on with killed ones; else start anew.",
        )

    def main() -> None:
        _run(grid)

    start(Binary(grid.name, about, main, grid.presets, define=define))


def _run(grid: Grid) -> None:
    from experiments.kit import run_flags
    from experiments.kit.run_list import by_name, finished_rows, run_all

    config = config_from_flags(grid.presets[FLAGS.preset])
    config.check()
    if grid.reads_data and FLAGS.data_dir is not None:
        # Where all loaders look.
        os.environ["RLM_DATA_DIR"] = FLAGS.data_dir
    every = grid.function(grid.runs)(config, run_flags.seeds())
    chosen = run_flags.runs_like(by_name(every), FLAGS.only)
    output, results = run_flags.folders()
    run_all([*chosen.values()], output, results, FLAGS.resume)
    # Nothing is written where all runs were done before.
    output.mkdir(parents=True, exist_ok=True)
    # Also those that another process has made.
    text = grid.function(grid.report)(finished_rows(every, results), output)
    (output / "table.md").write_text(text + "\n", "utf-8")
    print(f"\n{text}\n\n{output}", flush=True)


def command_of(grid: Grid, config: Any, seed: int | str, **chosen: Any) -> str:
    """Returns the command of one run, but for folders.

    Args:
        grid: The study.
        config: Its settings.
        seed: Of the run; or several, as the flag has them.
        **chosen: The one value that the run has of settings that are lists.
    """
    names = [field.name for field in dataclasses.fields(config)]

    def others(preset: str) -> list[str]:
        """Returns the flags that differ from a preset."""
        return [
            f"--{name}={flag_text(getattr(config, name))}"
            for name in names
            if name not in chosen
            and getattr(config, name) != getattr(grid.presets[preset], name)
        ]

    # The preset that needs the fewest other flags.
    preset = min(grid.presets, key=lambda name: len(others(name)))
    flags_given = [
        f"--preset={preset}",
        *(f"--{name}={flag_text(value)}" for name, value in chosen.items()),
        f"--seeds={seed}",
        *others(preset),
    ]
    return " ".join([f"python -m experiments.{grid.name}", *flags_given])

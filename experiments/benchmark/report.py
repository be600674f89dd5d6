"""What the benchmark writes: rows with all numbers, and the table."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from experiments.benchmark.stored import read_rows
from experiments.benchmark.timing import Line
from experiments.benchmark.timing import Row as Measured
from experiments.kit.drawing import table
from experiments.kit.machine import environment
from experiments.kit.rows import Row, Rows
from rlm_tf.file_errors import naming

TABLE = "benchmark.md"
# Cores used by other programs from which on times are visibly wrong.
_NOTICED = 0.2


class Report:
    """Rows measured so far, in `rows.jsonl`, and their table in `benchmark.md`.

    Rows that are measured again replace their older selves; the others stay, those of
    other processes, too.

    Args:
        folder: Where `benchmark.md` is or will be.
        preset: Name of the preset, with which rows found there must agree.
        results_dir: Where `rows.jsonl` is or will be; empty: `folder`.

    Raises:
        ValueError: If a row is damaged or of another preset.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        preset: str,
        results_dir: str | os.PathLike[str] = "",
    ):
        self.folder = pathlib.Path(folder)
        self.preset = preset
        self.results = Rows(results_dir or folder)
        self._check_preset()

    @property
    def rows(self) -> dict[str, Row]:
        """The rows there are now, by name, in the table's order."""
        return read_rows(self.results)

    def add(
        self,
        name: str,
        row: Measured,
        *,
        seconds: float,
        other_programs: float | None,
        inputs: dict[str, Any] | None = None,
    ) -> None:
        """Writes a row, and the table anew.

        Args:
            name: Name of the row.
            row: What was measured.
            seconds: What it took to measure.
            other_programs: How many cores other programs used meanwhile, if known.
            inputs: What it was measured on, see `holds`.
        """
        self._check_preset()
        content = {
            "preset": self.preset,
            "lines": [line._asdict() for line in row.lines],
            "numbers": row.numbers,
            "environment": environment(),
            "seconds": round(seconds, 1),
            "other_programs_cores": other_programs,
            "inputs": inputs or {},
        }
        self.results.write(name, content)
        written = None
        # Another process may have added a row since the table was made.
        while written != (text := self.table()):
            _write(self.folder / TABLE, text)
            written = text

    def holds(self, name: str, inputs: dict[str, Any]) -> bool:
        """Whether a row is there and was measured on the same inputs."""
        row = self.rows.get(name)
        return row is not None and row["inputs"] == inputs

    def table(self) -> str:
        """Returns the Markdown table and what it was measured with."""
        rows = self.rows
        return f"{table_of_lines(lines_of(rows.values()))}\n\n{conditions(rows)}"

    def _check_preset(self) -> None:
        for name, row in self.rows.items():
            if row["preset"] != self.preset:
                raise ValueError(
                    f"{self.results.folder} holds rows of the preset "
                    f"{row['preset']!r} ({name}): give another --output_dir (or "
                    f"--results_dir) for {self.preset!r}."
                )


def lines_of(rows: Iterable[Row]) -> list[Line]:
    """Returns the lines of some rows."""
    return [Line(**line) for row in rows for line in row["lines"]]


def table_of_lines(lines: Iterable[Line]) -> str:
    """Returns lines as a Markdown table."""
    return table(("what", "ours", "peer", "ratio", "target"), list(lines))


def conditions(rows: Mapping[str, Row]) -> str:
    """Returns what the columns mean, and what rows were measured with."""
    environments = [row["environment"] for row in rows.values()]
    machines = {environment["machine"] for environment in environments}
    software = {
        ", ".join(
            f"{name} {number}" for name, number in environment["software"].items()
        )
        for environment in environments
    }
    corpora = {row["inputs"].get("corpus") for row in rows.values()}
    commits = {environment.get("commit") for environment in environments}
    return (
        "Ratio: ours over the peer's; the median over rounds in which both ran one "
        "after the other, and the quartiles. Medians of the times. Only AWD-LSTMs and "
        "encoders have dropout; LSTM rows read random words, IMM rows the text.\n"
        f"Measured on: {'; '.join(sorted(machines))}. {'; '.join(sorted(software))}. "
        f"Text: {_listed(corpora)}. Commit: {_listed(commits)}.\n"
        f"{_disturbed(rows)}"
    )


def _disturbed(rows: Mapping[str, Row]) -> str:
    """Returns a warning if rows were measured on a busy machine."""
    busy = {name: row["other_programs_cores"] for name, row in rows.items()}
    disturbed = [
        f"{name} {used:.1f}"
        for name, used in busy.items()
        if used is not None and used > _NOTICED
    ]
    if not disturbed:
        return ""
    return (
        "Other programs ran meanwhile, so these rows are not to be trusted (cores "
        f"that they used): {', '.join(disturbed)}.\n"
    )


def _listed(values: set[str | None]) -> str:
    return ", ".join(sorted(value or "unknown" for value in values))


def _write(path: pathlib.Path, text: str) -> None:
    """Writes beside and renames, so that a kill leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with naming(path):
        beside.write_text(text, "utf-8")
        beside.replace(path)

"""The files that the benchmark writes: all numbers, and the table."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from experiments.benchmark.timing import Line, Row
from experiments.kit.machine import environment
from rlm_tf.file_errors import naming

_JSON, _TABLE = "benchmark.json", "benchmark.md"
# Cores used by other programs from which on times are visibly wrong.
_NOTICED = 0.2


class Report:
    """Rows measured so far, in `benchmark.json` and `benchmark.md` of a folder.

    Rows that are measured again replace their older selves; the others stay.

    Args:
        folder: Where the files are or will be.
        preset: Name of the preset, with which rows found there must agree.

    Raises:
        ValueError: If the file is damaged or of another preset.
    """

    def __init__(self, folder: str | os.PathLike[str], preset: str):
        self.folder = pathlib.Path(folder)
        self.preset = preset
        self.rows: dict[str, dict[str, Any]] = {}
        path = self.folder / _JSON
        if path.is_file():
            try:
                found = json.loads(path.read_text())
                rows, other = dict(found["rows"]), found["preset"]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise ValueError(
                    f"{path} is not a file of this benchmark; remove it, or give "
                    "another --output_dir."
                ) from None
            if other != preset:
                raise ValueError(
                    f"{path} holds rows of the preset {other!r}: give another "
                    f"--output_dir for {preset!r}."
                )
            self.rows = rows

    def add(
        self,
        name: str,
        row: Row,
        order: list[str],
        *,
        seconds: float,
        other_programs: float | None,
        inputs: dict[str, Any] | None = None,
    ) -> None:
        """Puts a row in and writes both files.

        Args:
            name: Name of the row.
            row: What was measured.
            order: Names of all rows, in the table's order.
            seconds: What it took to measure.
            other_programs: How many cores other programs used meanwhile, if known.
            inputs: What it was measured on, see `holds`.
        """
        self.rows[name] = {
            "lines": [line._asdict() for line in row.lines],
            "numbers": row.numbers,
            "environment": environment(),
            "seconds": round(seconds, 1),
            "other_programs_cores": other_programs,
            "inputs": inputs or {},
        }
        self.rows = {key: self.rows[key] for key in order if key in self.rows}
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"preset": self.preset, "rows": self.rows}
        text = json.dumps(content, indent=1, allow_nan=False)
        _write(self.folder / _JSON, text + "\n")
        _write(self.folder / _TABLE, self.table())

    def holds(self, name: str, inputs: dict[str, Any]) -> bool:
        """Whether a row is there and was measured on the same inputs."""
        return name in self.rows and self.rows[name].get("inputs") == inputs

    def table(self) -> str:
        """Returns the Markdown table and what it was measured with."""
        titles = ("what", "ours", "peer", "ratio", "target")
        lines = [Line(**line) for row in self.rows.values() for line in row["lines"]]
        cells = [titles, ("---", "---:", "---:", "---:", "---:"), *lines]
        text = "".join(f"| {' | '.join(map(str, row))} |\n" for row in cells)
        environments = [row["environment"] for row in self.rows.values()]
        used = {json.dumps(environment["software"]) for environment in environments}
        machines = {environment["machine"] for environment in environments}
        software = "; ".join(
            ", ".join(f"{name} {version}" for name, version in json.loads(one).items())
            for one in sorted(used)
        )
        corpora = {row["inputs"].get("corpus") for row in self.rows.values()}
        commits = {environment.get("commit") for environment in environments}
        return (
            f"{text}\nRatio: ours over the peer's; the median over rounds in which both"
            " ran one after the other, and the quartiles. Medians of the times. No"
            " model has dropout; LSTM rows read random words, IMM rows the text.\n"
            f"Measured on: {'; '.join(sorted(machines))}. {software}. "
            f"Text: {_listed(corpora)}. Commit: {_listed(commits)}.\n"
            f"{self._disturbed()}"
        )

    def _disturbed(self) -> str:
        """Returns a warning if rows were measured on a busy machine."""
        busy = {name: row["other_programs_cores"] for name, row in self.rows.items()}
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
    beside = path.with_name(path.name + ".part")
    with naming(path):
        beside.write_text(text)
    beside.replace(path)

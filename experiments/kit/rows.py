"""Rows of results: the file `rows.jsonl` of a folder, a line a row.

Older versions wrote a file a row, `NAME.json`; a folder of those is still read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from experiments.kit.folders import remove
from rlm_tf.command_line import json_files
from rlm_tf.file_errors import naming

FILE = "rows.jsonl"
# What a person does about a row that cannot be read.
REMEDY = "remove it, and the run is made again"

Row = dict[str, Any]
# Of a file: when it was written and how large it is; None: there is none.
_Stamp = tuple[int, int, int] | None


class Rows:
    """The rows of a folder, by name; those of a study in it have its name in front.

    Several processes may write: each change is made under a lock of the file, beside
    it, and renamed, so that a kill leaves the old file or the new one.

    Args:
        folder: Has `rows.jsonl`, or will have it when the first row is written.
        study: Of the rows that are meant; none: all that have no study.
    """

    def __init__(self, folder: str | os.PathLike[str], study: str | None = None):
        self.folder = pathlib.Path(folder)
        self.study = study
        self.path = self.folder / FILE
        self._read: tuple[_Stamp, dict[str, Row]] = (None, {})

    def of(self, study: str | None) -> Rows:
        """Returns the rows of a study in the same folder."""
        return Rows(self.folder, study)

    def __contains__(self, name: str) -> bool:
        return self._key(name) in self._lines() or self._old(name).exists()

    def names(self) -> list[str]:
        """Returns the names: of the file's rows in its order, then of older files."""
        front = f"{self.study}/" if self.study else ""
        inside = [key[len(front) :] for key in self._lines() if key.startswith(front)]
        inside = [name for name in inside if "/" not in name]
        old = sorted(path.stem for path in self._old("*").parent.glob("*.json"))
        return list(dict.fromkeys([*inside, *old]))

    def place(self, name: str) -> str:
        """Returns where a row is, or will be, for messages."""
        old = self._old(name)
        if self._key(name) not in self._lines() and old.exists():
            return str(old)
        return f"{self.path} (row {self._key(name)})"

    def read(self, name: str, needs: Sequence[str] = (), remedy: str = REMEDY) -> Row:
        """Returns a row.

        Args:
            name: Of the row.
            needs: What it must have: names, or paths such as `perplexity.valid`.
            remedy: What to do if it is damaged, for the message.

        Raises:
            KeyError: If there is no such row.
            ValueError: If it is damaged, or has not what it needs.
        """
        found = self._lines().get(self._key(name))
        if found is None:
            try:
                return json_files.read_json(self._old(name), remedy, needs)
            except FileNotFoundError:
                raise KeyError(f"{self.path} has no row {self._key(name)}.") from None
        json_files.check_has(found, needs, self.place(name), remedy)
        # As a file a row had it, everybody gets one of their own.
        return json.loads(json.dumps(found))

    def read_all(self, needs: Sequence[str] = ()) -> list[Row]:
        """Returns all rows, sorted by name."""
        return [self.read(name, needs) for name in sorted(self.names())]

    def write(self, name: str, row: Row) -> None:
        """Adds a row, or puts it in the place of the one that has its name.

        Raises:
            ValueError: If a number is not finite, which JSON has no way to write.
            OSError: If the file cannot be written; names it.
        """
        json_files.check_finite(row, self.place(name))
        with self._changing() as lines:
            lines[self._key(name)] = row

    def remove(self, names: Iterable[str]) -> None:
        """Removes rows, those that there are."""
        names = list(names)
        for name in names:
            remove(self._old(name))
        if any(self._key(name) in self._lines() for name in names):
            with self._changing() as lines:
                for name in names:
                    lines.pop(self._key(name), None)

    def _key(self, name: str) -> str:
        return f"{self.study}/{name}" if self.study else name

    def _old(self, name: str) -> pathlib.Path:
        return self.folder / f"{self._key(name)}.json"

    def _lines(self) -> dict[str, Row]:
        stamp = _stamp(self.path)
        if stamp is None:
            return {}
        if stamp != self._read[0]:
            self._read = (stamp, dict(_rows_in(self.path)))
        return self._read[1]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Row]]:
        """Gives the rows that other processes have left, and writes what becomes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        beside = self.folder / f".{FILE}.{os.getpid()}"
        with _locked(self.folder / f".{FILE}.lock"), naming(self.path):
            lines = dict(self._lines())
            yield lines
            text = "".join(
                json.dumps({"name": key, "row": row}, allow_nan=False) + "\n"
                for key, row in lines.items()
            )
            try:
                beside.write_text(text, "utf-8")
                beside.replace(self.path)
            finally:
                beside.unlink(missing_ok=True)


def read_studies(
    results: pathlib.Path, studies: Collection[str], needs: Sequence[str]
) -> dict[str, list[Row]]:
    """Returns all rows of some studies, by study.

    Args:
        results: The folder of the rows.
        studies: Names of the studies.
        needs: What each row must have.

    Raises:
        ValueError: If a row is damaged, or none has any.
    """
    rows = {name: Rows(results, name).read_all(needs) for name in studies}
    check_any_rows(results, rows)
    return rows


def check_any_rows(results: pathlib.Path, rows: dict[str, list[Row]]) -> None:
    """Raises ValueError if there is nothing to report.

    Args:
        results: The folder in which rows were looked for.
        rows: What was found there, by study.
    """
    if not any(rows.values()):
        what = "holds no rows" if results.is_dir() else "is not a folder"
        raise ValueError(
            f"--results_dir={results} {what}: expected {results / FILE} with rows such "
            f"as {next(iter(rows))}/NAME."
        )


def _rows_in(path: pathlib.Path) -> Iterator[tuple[str, Row]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); {REMEDY}.") from None
    for number, line in enumerate(lines, start=1):
        place = f"{path}, line {number},"
        content = json_files.parse_json(line, place, REMEDY, ("name", "row"))
        if not isinstance(content["name"], str) or not isinstance(content["row"], dict):
            raise ValueError(
                f"{place} is damaged (expected a name and a JSON object); {REMEDY}."
            )
        yield content["name"], content["row"]


def _stamp(path: pathlib.Path) -> _Stamp:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # Where the file system has no locks, two processes that add a row in the same
        # moment would leave one.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

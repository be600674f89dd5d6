"""Reading text files, plain or packed, with messages that say what is wrong where."""

from __future__ import annotations

import gzip
import os
import pathlib
import zipfile
import zlib
from collections.abc import Iterable, Sequence

SUFFIXES = ("", ".gz", ".zip")


def find_file(folders: Iterable[pathlib.Path], name: str) -> pathlib.Path | None:
    """Returns the first of `name`, `name.gz`, `name.zip` in the folders, or None."""
    for folder in folders:
        for suffix in SUFFIXES:
            path = folder / (name + suffix)
            if path.is_file():
                return path
    return None


def read_bytes(path: str | os.PathLike[str], member: str | None = None) -> bytes:
    """Returns the content of a file, unpacked if its name ends in `.gz` or `.zip`.

    Args:
        path: The file.
        member: The file wanted from a zip archive, in whichever folder; by default the
            archive's name without `.zip`, or the only file there is.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is empty, damaged, or an archive without the member.
    """
    path = pathlib.Path(path)
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                data = stream.read()
        elif path.suffix == ".zip":
            data = _read_member(path, member or path.stem)
        else:
            data = path.read_bytes()
    except FileNotFoundError:
        raise
    except (
        OSError,  # gzip.BadGzipFile is one
        EOFError,
        zlib.error,
        zipfile.BadZipFile,
        NotImplementedError,  # a compression method this Python lacks
        RuntimeError,  # a password
        UnicodeDecodeError,  # a member's name
        ValueError,
    ) as error:
        raise ValueError(f"{path}: cannot be read: {error}.") from error
    if not data:
        raise ValueError(f"{path}: the file is empty; expected text.")
    return data


def _read_member(path: pathlib.Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        files = [info for info in archive.infolist() if not info.is_dir()]
        wanted = [f for f in files if pathlib.PurePosixPath(f.filename).name == name]
        if not wanted and len(files) == 1:
            wanted = files
        if len(wanted) != 1:
            found = ", ".join(f.filename for f in files[:10]) or "nothing"
            raise ValueError(
                f"expected one file {name!r} in the archive, found {found}"
            )
        return archive.read(wanted[0])


def check_text(data: bytes, path: str | os.PathLike[str]) -> bytes:
    """Returns `data` if it is UTF-8 text, without a byte order mark.

    Raises:
        ValueError: If it is binary or badly encoded; names file and line.
    """
    if (at := data.find(b"\0")) >= 0:
        raise ValueError(
            f"{path}, line {line_of(data, at)}: expected text, found a zero byte: a "
            "binary file, or text that is not UTF-8."
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {line_of(data, error.start)}: expected UTF-8 text, found "
            f"the byte 0x{data[error.start]:02x}."
        ) from None
    return data.removeprefix(b"\xef\xbb\xbf")


def line_of(data: bytes, position: int) -> int:
    """Returns the number of the line that a byte is in, from 1."""
    return data.count(b"\n", 0, position) + 1


def cut(data: bytes, fractions: Sequence[float], *, at_lines: bool) -> list[bytes]:
    """Cuts text into consecutive parts.

    Args:
        data: UTF-8 text, or any bytes when `at_lines` is False and it is not UTF-8.
        fractions: Where to cut, as parts of the whole, increasing.
        at_lines: Whether to move each cut on to the next line start.

    Returns:
        `len(fractions) + 1` parts; some may be empty.
    """
    parts, start = [], 0
    for fraction in fractions:
        end = max(start, int(fraction * len(data)))
        if at_lines:
            newline = data.find(b"\n", max(end - 1, start))
            end = len(data) if newline < 0 else newline + 1
        else:
            while end < len(data) and data[end] & 0xC0 == 0x80:  # within a character
                end += 1
        parts.append(data[start:end])
        start = end
    return [*parts, data[start:]]

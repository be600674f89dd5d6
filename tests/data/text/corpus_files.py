"""A small corpus of three texts, and ways to put files where loaders look."""

from __future__ import annotations

import gzip
import pathlib
import zipfile

TEXTS = {
    "train": " a b a <unk>\n \n a c\n",
    "valid": " a b\n",
    "test": " c\n a\n",
}
COUNTS = (9, 3, 4)


def plain(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / name).write_text(text)


def gz(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / (name + ".gz")).write_bytes(gzip.compress(text.encode()))


def zipped(folder: pathlib.Path, name: str, text: str) -> None:
    with zipfile.ZipFile(folder / (name + ".zip"), "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"some/{name}", text)


def packed(data: bytes, kind: str, name: str, path: pathlib.Path) -> None:
    if kind == ".gz":
        data = gzip.compress(data, mtime=0)
    elif kind == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, data)
        data = path.read_bytes()
    path.write_bytes(data)

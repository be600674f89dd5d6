"""What tells the weights of a model's file from others."""

from __future__ import annotations

import hashlib
import pathlib
import zipfile

_WEIGHTS = "model.weights.h5"


def weights_digest(path: pathlib.Path) -> str | None:
    """Returns SHA-256 of the weights of a model, None where there is no file.

    Of those in a `.keras` file, which says when it was written, too; of the file itself
    otherwise. Runs that are repeated to the bit have the same.
    """
    if not path.exists():
        return None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if _WEIGHTS in archive.namelist():
                return hashlib.sha256(archive.read(_WEIGHTS)).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()

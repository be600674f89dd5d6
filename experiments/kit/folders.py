"""Files and folders."""

from __future__ import annotations

import pathlib
import shutil


def remove(path: pathlib.Path) -> None:
    """Removes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

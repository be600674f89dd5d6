"""Where an export may be written, and the hidden folder that it is made in."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterator

from rlm_tf.file_errors import full_disk_named

try:
    import fcntl
except ImportError:  # Not on Windows.
    fcntl = None  # type: ignore[assignment]

SAVED_MODEL = "saved_model.pb"
# TensorFlow looks for the files of variables with patterns.
_PATTERN = re.compile(r"[*?\[\\]")
# What the folders hold: the lock, the new SavedModel, and the one that it replaces.
_LOCK, NEW, OLD = "lock", "new", "old"
_SUFFIX = re.compile(r"[a-z0-9_]{8}")
# Seconds after which a folder without a lock counts as left over: some network file
# systems have no locks.
_UNLOCKED = 86400.0


def check_export_path(
    path: str | os.PathLike[str],
    overwrite: bool = False,
    remedy: str = "choose another path, or overwrite it (overwrite=True)",
) -> None:
    """Checks that a SavedModel may be written; ask before a long training.

    Args:
        path: Directory to be made; a symbolic link stands for what it points to.
        overwrite: Whether a SavedModel there is replaced.
        remedy: What to do if it is there and is not.

    Raises:
        FileExistsError: If something else is there, or a SavedModel that must stay.
        ValueError: If TensorFlow could not read files of that name.
    """
    place = export_place(path)
    if found := _PATTERN.search(place.as_posix()):
        raise ValueError(
            f"{path}: TensorFlow takes {found[0]!r} in a path for a pattern and would "
            "not find the files; choose a name without any of * ? [ \\."
        )
    here = pathlib.Path.cwd()
    if pathlib.Path(os.path.realpath(place)) in (here, *here.parents):
        raise FileExistsError(
            f"{path} is the folder that this process runs in, or one around it, which "
            "no SavedModel may replace; name a folder to be made."
        )
    for parent in place.parents:
        if parent.exists() and not parent.is_dir():
            raise FileExistsError(
                f"{path}: {parent} is a file, so that no folder can be made below it; "
                "choose another path."
            )
    if not os.path.lexists(place) or (place.is_dir() and not any(place.iterdir())):
        return
    if not (place / SAVED_MODEL).is_file():
        raise FileExistsError(
            f"{path} exists and is not a SavedModel; choose another path."
        )
    if not overwrite:
        raise FileExistsError(f"{path} already holds a SavedModel; {remedy}.")


def export_place(path: str | os.PathLike[str]) -> pathlib.Path:
    """Returns where a SavedModel really goes: a link is kept, its target replaced.

    Raises:
        FileExistsError: If links lead in a circle.
    """
    place = pathlib.Path(path)
    if not place.name or place.name == "..":
        return pathlib.Path(os.path.abspath(place))
    if not place.is_symlink():
        return place
    target = pathlib.Path(os.path.realpath(place))
    if target.is_symlink():
        raise FileExistsError(
            f"{path} is a symbolic link that leads to itself; choose another path."
        )
    return target


def served_name(path: str | os.PathLike[str]) -> str:
    """Returns the name a server knows an export by, of NAME or of NAME/VERSION."""
    place = pathlib.Path(os.path.abspath(path))
    return place.parent.name if is_version(place) else place.name


def is_version(path: pathlib.Path) -> bool:
    """Whether an export lies in NAME/VERSION, a number, as TensorFlow Serving wants."""
    place = pathlib.Path(os.path.abspath(path))
    return place.name.isascii() and place.name.isdigit() and place.parent.name != ""


@contextlib.contextmanager
def working_folder(place: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a hidden folder beside a path, which goes away in the end.

    A killed process leaves it there. The next export to the same path removes such
    folders, which are told from those of exports under way by a lock on a file that the
    system takes back when a process ends; one with a former SavedModel in its `old`
    stays until there is a SavedModel at the path again.

    Raises:
        OSError: Among others if the disk is full; names the path.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(place)
    beside = None
    try:
        with full_disk_named(place, "the SavedModel"):
            prefix = f".{place.name}."
            beside = pathlib.Path(tempfile.mkdtemp(dir=place.parent, prefix=prefix))
            with (beside / _LOCK).open("w") as lock:
                if not _lock(lock.fileno()):
                    (beside / _LOCK).unlink()
                yield beside
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)
    _remove_left_over(place)


def _remove_left_over(place: pathlib.Path) -> None:
    """Removes the hidden folders that killed exports to the same path have left."""
    prefix = f".{place.name}."
    for folder in place.parent.iterdir():
        name = folder.name
        if not name.startswith(prefix) or not _SUFFIX.fullmatch(name[len(prefix) :]):
            continue
        with contextlib.suppress(OSError):
            inside = {child.name for child in folder.iterdir()}
            ours = not folder.is_symlink() and inside <= {_LOCK, NEW, OLD}
            if ours and not (OLD in inside and not place.exists()):
                _remove_if_dead(folder)


def _remove_if_dead(folder: pathlib.Path) -> None:
    if not (folder / _LOCK).exists():
        if time.time() - folder.stat().st_mtime > _UNLOCKED:
            shutil.rmtree(folder, ignore_errors=True)
        return
    with (folder / _LOCK).open("a") as lock:
        if _lock(lock.fileno()):
            shutil.rmtree(folder, ignore_errors=True)


def _lock(file: int) -> bool:
    """Whether an open file could be locked: no other process holds it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

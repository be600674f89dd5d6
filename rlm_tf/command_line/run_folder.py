"""The folder of a run: whose it is, and what is removed from it."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.same_settings import check_same_settings

_REMEDY = "--overwrite, or another --output_dir"


def claim(
    settings_file: pathlib.Path,
    wanted: dict[str, Any],
    files: Sequence[str],
    *,
    result: str,
    overwrite: bool,
    resume: bool,
    defaults: Mapping[str, Any] | None = None,
    beside: Sequence[str] = (),
    early: Sequence[str] = (),
) -> bool:
    """Makes a folder this run's, or says that the run is done.

    Args:
        settings_file: In the folder: says whose it is. What is in it is as JSON has it.
        wanted: Today's settings, with the digest `text_sha256`.
        files: What runs leave in the folder beside it.
        result: Which of them is written last.
        overwrite: Whether a run of other settings is replaced, or one that is done.
        resume: Whether what an earlier run has left is used.
        defaults: What settings were before they existed.
        beside: What may be in the folder before it is this run's.
        early: Which of `files` cost next to nothing: a run that has left no other
            gives way to one of other settings.

    Returns:
        Whether the result is there.

    Raises:
        ValueError: If the folder is of other settings, or of something else.
    """
    folder = settings_file.parent
    ours = settings_file.exists()
    if ours and not overwrite:
        found = read_json(settings_file, f"give {_REMEDY}")
        try:
            check_same_settings(
                _readable({**(defaults or {}), **found}),
                _readable(wanted),
                str(settings_file),
                _REMEDY,
            )
        except ValueError:
            if any((folder / name).exists() for name in files if name not in early):
                raise
            # Such as a run that ended by a mistake in its settings.
            remove_all(folder, early)
        if (folder / result).exists():
            return True
    if ours and (overwrite or not resume):
        # The settings stay until others replace them: they say whose folder it is.
        remove_all(folder, files)
    if (
        not ours
        and folder.is_dir()
        and any(
            # What a kill left of writing the settings is no other's file.
            not file.name.startswith(f".{settings_file.name}.")
            and file.name not in beside
            for file in folder.iterdir()
        )
    ):
        raise ValueError(
            f"--output_dir={folder} has files of something else; name a new folder."
        )
    write_json(settings_file, wanted)
    return False


def remove_all(folder: pathlib.Path, names: Sequence[str]) -> None:
    """Removes files and folders of a folder that are there."""
    for name in names:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _readable(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns settings with the beginning of the text's digest, enough for messages."""
    digest = settings.get("text_sha256")
    if digest is None:
        return settings
    return {**settings, "text_sha256": f"{digest[:8]}... (the text's content)"}

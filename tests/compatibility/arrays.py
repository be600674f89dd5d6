"""Nested tuples and dictionaries of arrays as the flat archives beside the files."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

FILES = pathlib.Path(__file__).parent / "files"


def flat(name: str, value: Any) -> dict[str, np.ndarray]:
    """Returns the arrays of a structure, keyed by their path below `name`.

    Named tuples come back as tuples, None as nothing.
    """
    if value is None:
        return {}
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list | tuple):
        items = list(enumerate(value))
    else:
        return {name: np.asarray(value)}
    found: dict[str, np.ndarray] = {}
    for key, part in items:
        found |= flat(f"{name}/{key}", part)
    return found


def nested(name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Undoes `flat`; names that are numbers make tuples."""
    if name in arrays:
        return arrays[name]
    keys = [
        key.removeprefix(f"{name}/") for key in arrays if key.startswith(f"{name}/")
    ]
    first = list(dict.fromkeys(key.partition("/")[0] for key in keys))
    parts = {key: nested(f"{name}/{key}", arrays) for key in first}
    if all(key.isdigit() for key in first):
        return tuple(parts.values())
    return parts


def write(name: str, arrays: dict[str, np.ndarray]) -> None:
    """Writes `files/NAME.npz`."""
    np.savez_compressed(FILES / f"{name}.npz", **arrays)


def read(name: str) -> dict[str, np.ndarray]:
    """Reads what `write` wrote."""
    with np.load(FILES / f"{name}.npz", allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def assert_close(
    found: dict[str, np.ndarray], known: dict[str, np.ndarray], tolerance: float
) -> None:
    """Checks that all that is known was found, too, with about the same values."""
    assert not sorted(set(known) - set(found)), "these are gone"
    for name, value in known.items():
        assert np.shape(found[name]) == value.shape, name
        if value.dtype.kind == "U":
            assert np.array_equal(found[name], value), name
            continue
        # Other processors add in another order.
        np.testing.assert_allclose(
            np.asarray(found[name], np.float64),
            np.asarray(value, np.float64),
            rtol=tolerance,
            atol=tolerance,
            err_msg=name,
        )

"""JSON files that a kill leaves whole, and what is said of damaged ones."""

from __future__ import annotations

import json
import math
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from rlm_tf.command_line.written_files import write_beside

# A JSON list of numbers alone, over several lines: lines do not break within strings.
_NUMBERS = re.compile(r"\[\n\s*-?\d[\d.eE+-]*(?:,\n\s*-?\d[\d.eE+-]*)*\n\s*\]")


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes JSON beside the file and renames it, so that no reader sees half of it.

    Lists of numbers take one line each, as they would be mostly indentation.

    Raises:
        ValueError: If a number is not finite, which JSON has no way to write.
        OSError: If the file cannot be written; names it.
    """
    check_finite(content, str(path))
    written = json.dumps(content, indent=1, allow_nan=False)
    text = _NUMBERS.sub(lambda found: re.sub(r"\s+", "", found[0]), written)
    write_beside(path, f"{text}\n".encode())


def read_json(
    path: pathlib.Path, remedy: str, needs: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the JSON object of a file that some run has written.

    Args:
        path: The file.
        remedy: What to do if it is damaged, for the message.
        needs: What the object must have, see `check_has`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged or something else; names the file.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{path} is damaged ({error}); {remedy}.") from None
    return parse_json(content, str(path), remedy, needs)


def parse_json(
    text: str | bytes, place: str, remedy: str, needs: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns a JSON object from its text; `place` is named if it is damaged.

    Raises:
        ValueError: If it is damaged or something else.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} is damaged ({error}); {remedy}.") from None
    if not isinstance(content, dict):
        raise ValueError(
            f"{place} is damaged (expected a JSON object, found a "
            f"{type(content).__name__}); {remedy}."
        )
    check_has(content, needs, place, remedy)
    return content


def check_has(
    content: dict[str, Any], needs: Sequence[str], place: str, remedy: str
) -> None:
    """Raises ValueError unless an object has what its readers need.

    Args:
        content: The object.
        needs: Names, with dots for objects in objects: `perplexity.valid`.
        place: Where it is from, for the message.
        remedy: What to do about it, for the message.
    """
    lacking = (_lacking(content, name.split(".")) for name in needs)
    missing = list(dict.fromkeys(filter(None, lacking)))
    if missing:
        raise ValueError(
            f"{place} is damaged (expected a JSON object, found one without "
            f"{', '.join(missing)}); {remedy}."
        )


def _lacking(content: Any, path: list[str]) -> str | None:
    """Returns the part of a path that ends where an object lacks it, or None."""
    for depth, name in enumerate(path, start=1):
        if not isinstance(content, dict) or name not in content:
            return ".".join(path[:depth])
        content = content[name]
    return None


def check_finite(content: Any, place: str) -> None:
    """Raises ValueError if a number is not finite, which JSON cannot say."""
    found = first_not_finite(content)
    if found is not None:
        raise ValueError(f"{place} is not written: {found} is no number.")


def first_not_finite(content: Any, name: str = "") -> str | None:
    """Returns `name = value` of a number in JSON content that is not finite, or None.

    The name is where it stands: `perplexity.valid`.
    """
    if isinstance(content, float) and not math.isfinite(content):
        return f"{name} = {content}"
    children: Any = ()
    if isinstance(content, dict):
        children = content.items()
    elif isinstance(content, list | tuple):
        children = enumerate(content)
    for key, child in children:
        found = first_not_finite(child, f"{name}.{key}" if name else str(key))
        if found is not None:
            return found
    return None


def with_nulls(content: Any) -> Any:
    """Returns JSON content with null for numbers that are not finite."""
    if isinstance(content, dict):
        return {key: with_nulls(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [with_nulls(value) for value in content]
    return (
        None if isinstance(content, float) and not math.isfinite(content) else content
    )

"""Words of lines that commands print."""

from __future__ import annotations


def number_of(noun: str, number: int) -> str:
    """Returns "1 epoch", "1,200 epochs"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

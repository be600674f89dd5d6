"""Words of lines that commands print."""

from __future__ import annotations


def number_of(noun: str, number: float) -> str:
    """Returns "1 epoch", "1,200 epochs", "0.3 epochs"."""
    if number == int(number):
        number = int(number)
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

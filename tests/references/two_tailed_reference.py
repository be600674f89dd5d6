"""Two-Tailed Averaging with all iterates kept, in exact fractions.

Averages are recomputed from their lengths at every evaluation; nothing is accumulated.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple


class Report(NamedTuple):
    loss: Fraction
    theta: Fraction
    length: int
    short_length: int
    long_length: int


def run(
    iterates: list[Fraction],
    loss: Callable[[Fraction], Fraction],
    period: int,
    *,
    extended: bool,
    patience: int = 3,
    reset: str = "switch",
) -> list[Report]:
    """Returns what Algorithm 1 (or 2) reports after every `period` iterates."""
    short = long = 0
    # Losses of the present short and long average, oldest first.
    of_short: list[Fraction] = []
    of_long: list[Fraction] = []
    reports = []
    for t in range(period, len(iterates) + 1, period):
        short, long = short + period, long + period

        def average(length: int, t: int = t) -> Fraction:
            return sum(iterates[t - length : t], Fraction(0)) / length

        raw, theta_long = loss(iterates[t - 1]), average(long)
        of_short.append(loss(average(short)))
        of_long.append(loss(theta_long))
        best_loss = of_long[-1]
        forget = False
        if of_short[-1] <= of_long[-1] or (
            extended and reset == "switch" and _stagnates(of_long, patience)
        ):
            best_loss, theta_long, long = of_short[-1], average(short), short
            of_long, of_short, short = of_short, [], 0
        elif extended and _stagnates(of_long, patience):
            forget = True
        elif extended and _stagnates(of_short, patience):
            of_short, short = [], 0
        length = long
        if extended and long > 1 and raw <= best_loss:
            forget = forget or long == period
            best_loss, theta_long, length = raw, iterates[t - 1], 1
        if forget:
            short, long, of_short, of_long = 0, 0, [], []
        reports.append(Report(best_loss, theta_long, length, short, long))
    return reports


def _stagnates(losses: list[Fraction], patience: int) -> bool:
    """Whether the last `patience` losses are all no better than the best before."""
    if len(losses) <= patience:
        return False
    return min(losses[-patience:]) >= min(losses[:-patience])

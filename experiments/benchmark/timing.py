"""Times functions in turn and compares them."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tqdm

from experiments.kit.timing import Step, duration, elapsed


class Line(NamedTuple):
    """One line of the table.

    Attributes:
        what: What was measured.
        ours: Our value, with its unit.
        peer: Whose value it is compared with, and that value.
        ratio: Ours over the peer's, with its quartiles where there are several.
        target: What the ratio (or our value) should be.
    """

    what: str
    ours: str = ""
    peer: str = ""
    ratio: str = ""
    target: str = ""


class Row(NamedTuple):
    """What one row of the benchmark gives: lines of the table and all numbers."""

    lines: list[Line]
    numbers: dict[str, Any]


class Timings:
    """Seconds that several functions took, measured in turn.

    Functions run one after the other in every round, so that a slow or a busy moment of
    the machine meets all of them, and ratios are taken within a round. Each round has
    an order of its own: what a function leaves behind (threads that still spin, memory
    to give back) must not always meet the same successor.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def run(self, steps: Mapping[str, Step], rounds: int, warm_up: int = 3) -> None:
        """Calls every function `warm_up` times unmeasured, then once a round."""
        names = list(steps)
        calls = len(names) * (warm_up + rounds)
        with tqdm.tqdm(total=calls, unit="step", leave=False, disable=None) as bar:
            for step in steps.values():
                for _ in range(warm_up):
                    step()
                    bar.update()
            order = random.Random(0)
            for _ in range(rounds):
                order.shuffle(names)
                for name in names:
                    self.add(name, elapsed(steps[name]))
                    bar.update()

    def add(self, name: str, seconds: float) -> None:
        """Adds one measurement."""
        self.seconds.setdefault(name, []).append(seconds)

    def median(self, name: str) -> float:
        """Returns the median in seconds."""
        return statistics.median(self.seconds[name])

    def text(self, name: str) -> str:
        """Returns the median in a readable unit."""
        return duration(self.median(name))

    def ratio(self, ours: str, peer: str) -> str:
        """Returns the median of the rounds' ratios, and their quartiles."""
        pairs = zip(self.seconds[ours], self.seconds[peer], strict=True)
        ratios = [a / b for a, b in pairs]
        low, middle, high = quartiles(ratios)
        return f"{middle:.2f} ({low:.2f} to {high:.2f})"

    def numbers(self) -> dict[str, Any]:
        """Returns median, quartiles, minimum and repetitions of each, in ms."""
        result = {}
        for name, seconds in self.seconds.items():
            low, middle, high = quartiles(seconds)
            result[name] = {
                "median_ms": middle * 1e3,
                "quartiles_ms": [low * 1e3, high * 1e3],
                "min_ms": min(seconds) * 1e3,
                "repetitions": len(seconds),
            }
        return result


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns lower quartile, median and upper quartile of at least one value."""
    if len(values) == 1:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high

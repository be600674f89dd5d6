"""Times calls, above all steps of what `fit()` runs."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

Step = Callable[[], Any]


def elapsed(step: Step) -> float:
    """Returns the seconds that one call takes."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def median_seconds(step: Step, times: int) -> float:
    """Returns the median seconds of some calls, behind one that is not counted."""
    step()
    return statistics.median(elapsed(step) for _ in range(times))


def projected_seconds(
    step_of: Callable[[int], Step], rows: int, timed: tuple[int, int], times: int
) -> float:
    """Returns the seconds of a step of many rows, from those of steps of few.

    What a step costs whatever its rows, such as changing all weights, is not
    multiplied: a line through both sizes gives it.

    Args:
        step_of: Gives a step of so many rows.
        rows: Of the step whose seconds are asked for.
        timed: Two numbers of rows, the smaller first, that are timed.
        times: Calls of each, of which the median counts.
    """
    few, many = timed
    seconds = {size: median_seconds(step_of(size), times) for size in timed}
    a_row = max(0.0, seconds[many] - seconds[few]) / (many - few)
    return seconds[many] + (rows - many) * a_row


def train_function_step(model: keras.Model, batches: list[Any]) -> Step:
    """Returns a function that takes one step of what `model.fit()` runs.

    Args:
        model: A compiled model.
        batches: Tensors `(x, y)` or `(x, y, weights)`, used in turn.
    """
    model.make_train_function()
    source = itertools.cycle(batches)

    def step() -> float:
        # Reading a value waits for the step.
        return float(model.train_function(iter([next(source)]))["loss"])

    return step


def duration(seconds: float) -> str:
    """Returns a time in the unit that suits it, with three digits."""
    for limit, unit in ((1e-3, "us"), (1.0, "ms"), (120.0, "s"), (7200.0, "min")):
        if seconds < limit:
            scale = {"us": 1e6, "ms": 1e3, "s": 1.0, "min": 1 / 60}[unit]
            return f"{_three_digits(seconds * scale)} {unit}"
    return f"{_three_digits(seconds / 3600)} h"


def _three_digits(value: float) -> str:
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"

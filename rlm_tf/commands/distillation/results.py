"""What `distil` ends with: a table of teacher, student alone, and student."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

_CALLS = 20


class Row(NamedTuple):
    """A model's price and worth on held-out data.

    Attributes:
        name: teacher, student alone or student.
        parameters: Of all its models.
        megabytes: Of its weights.
        milliseconds: Median time of a prediction, of one example or of one token.
        score: Accuracy, or perplexity of a token.
        nll: Mean negative log-likelihood, nats.
        calibration: Expected calibration error, 15 bins.
        fidelity: Share of predictions whose most probable class is the teacher's; None
            of the teacher.
    """

    name: str
    parameters: int
    megabytes: float
    milliseconds: float
    score: float
    nll: float
    calibration: float
    fidelity: float | None


class Distilled(NamedTuple):
    """What `distil` gives.

    Attributes:
        student: With its best weights.
        alone: The same student, trained without the teacher.
        rows: Of teacher, student alone and student, on the test data, or on validation
            data where there are none.
        title: What `score` is: accuracy or perplexity.
    """

    student: keras.Model
    alone: keras.Model
    rows: list[Row]
    title: str

    def table(self) -> str:
        """Returns the rows as a table."""
        digits = 3 if self.title == "accuracy" else 2
        titles = (
            "model",
            "parameters",
            "MB",
            "ms",
            self.title,
            "NLL, nats",
            "ECE",
            "says what the teacher says",
        )
        lines = [
            (
                row.name,
                f"{row.parameters:,}",
                f"{row.megabytes:.2f}",
                f"{row.milliseconds:.2f}",
                f"{row.score:.{digits}f}",
                f"{row.nll:.3f}",
                f"{row.calibration:.3f}",
                "" if row.fidelity is None else f"{100 * row.fidelity:.1f} %",
            )
            for row in self.rows
        ]
        from rlm_tf.commands.report.writing import markdown_table

        return "\n".join(markdown_table([titles, *lines]))


def price_of(models: Sequence[keras.Model], call: Callable[[], Any]) -> dict[str, Any]:
    """Returns parameters, megabytes and milliseconds of models that are called once.

    Args:
        models: What is counted.
        call: Predicts one example by all of them.
    """
    weights = [weight for model in models for weight in model.weights]
    call()
    times = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    sizes = [np.prod(weight.shape, dtype=np.int64) for weight in weights]
    bits = [keras.backend.standardize_dtype(weight.dtype) for weight in weights]
    return {
        "parameters": int(sum(sizes)),
        "megabytes": sum(
            int(size) * np.dtype("float16" if each == "bfloat16" else each).itemsize
            for size, each in zip(sizes, bits, strict=True)
        )
        / 1e6,
        "milliseconds": float(np.median(times)),
    }

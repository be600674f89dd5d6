"""The error of training that no longer gives numbers."""

from __future__ import annotations


class TrainingDivergedError(ArithmeticError):
    """Training met a metric that is not finite."""

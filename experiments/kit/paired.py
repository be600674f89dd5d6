"""Differences of runs that share a seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def mean_and_error(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Returns the mean of first less second, and its standard error; nan for one."""
    differences = [first - second for first, second in pairs]
    if len(differences) < 2:
        return float(np.mean(differences)) if differences else math.nan, math.nan
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return float(np.mean(differences)), error


def paired_difference(pairs: Sequence[tuple[float, float]], digits: int = 2) -> str:
    """Returns `mean ± two standard errors`, in bold where that is not about zero."""
    mean, error = mean_and_error(pairs)
    if math.isnan(mean):
        return ""
    if math.isnan(error):
        return f"{mean:+.{digits}f}"
    text = f"{mean:+.{digits}f} ± {2 * error:.{digits}f}"
    return f"**{text}**" if abs(mean) > 2 * error else text

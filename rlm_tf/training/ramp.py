"""Weights that rise over training."""

from __future__ import annotations

import math

from rlm_tf.checks import check_option, check_range

_KINDS = ("linear", "cosine", "cyclic", "piecewise")


def ramp(kind: str, t: float, total: float) -> float:
    """Returns how much of its final value a weight has (Dong 2025, appendix B.4.1).

        linear: t/T,    cosine: cos((1 - t/T) pi/2),    cyclic: sqrt(1 - (1 - t/T)^2),
        piecewise: 0 up to T/3, 1/2 up to 2T/3, then 1

    Args:
        kind: Of these.
        t: Epochs done, in [0, T].
        total: T, positive.

    Returns:
        A number in [0, 1]; 1 at the end.

    Raises:
        ValueError: If the kind is another, or a number out of range.
    """
    check_option("ramp", "kind", kind, _KINDS)
    check_range("ramp", 1e-30, math.inf, total=total)
    check_range("ramp", 0, total, t=t)
    share = t / total
    if kind == "linear":
        return share
    if kind == "cosine":
        return math.cos((1 - share) * math.pi / 2)
    if kind == "cyclic":
        return math.sqrt(1 - (1 - share) ** 2)
    # Thirds by multiplication: a third of 240 is 80 then.
    return 0.5 * ((3 * t > total) + (3 * t > 2 * total))

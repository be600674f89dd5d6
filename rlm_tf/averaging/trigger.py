"""When iterates have stopped to improve: rules of the non-monotonic trigger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rlm_tf.checks import check_integer, check_option

Rule = Literal["released", "published", "stale"]
RULES: tuple[Rule, ...] = ("released", "published", "stale")


def non_monotonic_trigger(
    losses: Sequence[float], patience: int = 5, *, rule: Rule = "released"
) -> int | None:
    """Returns the first epoch whose loss triggers averaging, n = `patience`.

        released   v_e > min(v_1 .. v_(e-1-n)), e - 1 > n: worse than the best of all
                   but the last n before (the code of AWD-LSTM and of those after it)
        published  v_e > min(v_(e-n) .. v_(e-1)), e - 1 > n: worse than the best of the
                   last n (the first text, a misprint by its authors' word)
        stale      n losses in a row, v_e the last, were not below the best before

    Args:
        losses: v_1, v_2, ..., one for each epoch or evaluation.
        patience: n >= 1.
        rule: Which rule.

    Returns:
        The epoch, from 1; None if there is none.

    Raises:
        ValueError: If `patience` is below 1 or `rule` unknown.
    """
    name = "non_monotonic_trigger"
    check_integer(name, "patience", patience, 1)
    check_option(name, "rule", rule, RULES)
    for epoch in range(1, len(losses) + 1):
        if _triggers(losses[:epoch], patience, rule):
            return epoch
    return None


def _triggers(losses: Sequence[float], patience: int, rule: Rule) -> bool:
    """Whether the last loss does."""
    *before, last = losses
    if rule == "stale":
        earlier = before[: max(0, len(before) - patience + 1)]
        return bool(earlier) and min(losses[len(earlier) :]) >= min(earlier)
    if len(before) <= patience:
        return False
    compared = before[-patience:] if rule == "published" else before[:-patience]
    return last > min(compared)

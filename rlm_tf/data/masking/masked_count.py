"""How many tokens of a segment are masked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer

# So that rounding up in longer segments does not need more room.
_SLACK = 0.005


def max_masked(length: int, *, ratio: float = 0.15) -> int:
    """Returns the most masked tokens of a segment, `int((ratio + 0.005) length)`.

    Args:
        length: Tokens of a segment, padding included.
        ratio: Share of the tokens that is masked, in (0, 1).

    Returns:
        At least 1.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_integer("max_masked", "length", length, 1)
    check_ratio("max_masked", ratio)
    return min(max(1, int((ratio + _SLACK) * length)), length)


def masked_count(num_tokens: npt.ArrayLike, *, length: int, ratio: float = 0.15) -> Any:
    """Returns how many tokens are masked, as in the code of ELECTRA and BERT.

        max(1, min(max_masked(length), round(ratio n)))

    Halves are rounded to even.

    Args:
        num_tokens: n, tokens of a segment, special ones but no padding; any shape.
        length: Tokens of a segment, padding included.
        ratio: Share of the tokens that is masked, in (0, 1).

    Returns:
        An integer, or integers in the shape of `num_tokens`.

    Raises:
        ValueError: If an argument is out of range.
    """
    numbers = np.asarray(num_tokens)
    if not np.issubdtype(numbers.dtype, np.integer) or np.any(numbers < 0):
        raise ValueError(
            f"masked_count: `num_tokens` must be integers >= 0, found {num_tokens!r}."
        )
    wanted = np.rint(ratio * numbers).astype(np.int64)
    found = np.maximum(1, np.minimum(max_masked(length, ratio=ratio), wanted))
    return int(found) if found.ndim == 0 else found


def check_ratio(function: str, ratio: float) -> None:
    """Raises ValueError unless a share is in (0, 1)."""
    if not 0.0 < ratio < 1.0:
        raise ValueError(f"{function}: `ratio` must lie in (0, 1), found {ratio}.")

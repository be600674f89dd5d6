"""How wide a model of a given number of parameters may be."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np

from rlm_tf.checks import check_integer

# Widths at which the number of parameters is known before it is guessed.
_SAMPLES = (8, 16, 24)
# The number may stay the same over fewer widths than this.
_LONGEST_PLATEAU = 256


def count_parameters(model: keras.Model) -> int:
    """Returns the number of trainable parameters, biases and embeddings included."""
    return int(sum(np.prod(v.shape, dtype=np.int64) for v in model.trainable_variables))


def width_for_budget(
    budget: int, build: Callable[[int], keras.Model | int], least: int = 1
) -> int:
    """Returns the largest width whose model has at most `budget` parameters.

        width_for_budget(
            24_000_000, lambda width: RegularizedLanguageModel(10_000, LSTMCell(width))
        )

    The number of parameters must grow with the width. It is a polynomial of degree two
    of it as a rule, which is fitted to narrow models, so that only a few wide ones are
    made.

    Args:
        budget: Number of trainable parameters.
        build: Maps a width to a model, or to its number of parameters.
        least: The smallest width that may be returned.

    Raises:
        ValueError: If the narrowest model has more parameters, or their number does not
            grow with the width.
    """
    check_integer("width_for_budget", "budget", budget, 1)
    check_integer("width_for_budget", "least", least, 1)
    known: dict[int, int] = {}

    def count(width: int) -> int:
        if width not in known:
            made = build(width)
            known[width] = (
                int(made)
                if isinstance(made, int | np.integer)
                else count_parameters(made)
            )
        return known[width]

    if count(least) > budget:
        raise ValueError(
            f"width_for_budget: a model of width {least} has {count(least):,} "
            f"parameters, more than the {budget:,} allowed."
        )
    widths = [least + width for width in _SAMPLES]
    polynomial = np.polynomial.Polynomial.fit(widths, [count(w) for w in widths], 2)
    roots = (polynomial - budget).roots()
    real = [float(root.real) for root in roots if abs(root.imag) < 1e-6]
    guess = max(least, int(max(real, default=float(least))))
    # Bracket the answer from the guess outwards, then halve.
    low, high, step = guess, guess + 1, 1
    while low > least and count(low) > budget:
        low, high, step = max(least, low - step), low, 2 * step
    step = 1
    while count(high) <= budget:
        if step >= _LONGEST_PLATEAU and count(high) == count(low):
            raise ValueError(
                f"width_for_budget: models of widths {low} and {high} both have "
                f"{count(low):,} parameters; their number must grow with the width."
            )
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if count(middle) <= budget:
            low = middle
        else:
            high = middle
    return low

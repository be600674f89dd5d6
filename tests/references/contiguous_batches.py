"""Contiguous batches, one token at a time."""

from __future__ import annotations


def naive_batches(
    tokens: list[int], batch_size: int, window: int, prefix: int
) -> list[list[list[tuple[int, int, float]]]]:
    """Returns `[step][row][t] = (input, target, weight)` by dealing tokens out.

    Every token goes to the row that its position falls in, then to the step of its
    place in the row; what is left over is padding.
    """
    length = -(-len(tokens) // batch_size)
    steps = -(-length // window)
    result = [
        [[(prefix, prefix, 0.0)] * window for _ in range(batch_size)]
        for _ in range(steps)
    ]
    previous = prefix
    for position, token in enumerate(tokens):
        row, place = divmod(position, length)
        step, t = divmod(place, window)
        result[step][row][t] = (previous, token, 1.0)
        previous = token
    return result

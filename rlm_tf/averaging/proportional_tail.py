"""The average of a fixed share of the iterates, the most recent ones."""

from __future__ import annotations

import fractions
import math
from typing import Any

from rlm_tf.averaging.weight_average import WeightAverage
from rlm_tf.averaging.weight_sum import Weights, WeightSum
from rlm_tf.checks import check_integer, check_range


class ProportionalTailAverage(WeightAverage):
    """The mean of the `ceil(c t)` most recent of t iterates.

    No fixed memory can hold it exactly. Here the iterates of the tail are kept as at
    most 2 B sums of blocks of equal length, which doubles when there would be more;
    what the tail has left behind is forgotten. Of the oldest block, one of B or so,
    the tail has a part as a rule, for which the mean of the block stands. While blocks
    have length 1, up to tails of 2 B, it is exact.

    Args:
        share: c in (0, 1].
        blocks: B. The memory is 2 B times that of the weights.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(self, share: float, blocks: int = 8) -> None:
        super().__init__()
        check_range("ProportionalTailAverage", 0.0, 1.0, share=share)
        if not share:
            raise ValueError(
                f"ProportionalTailAverage: `share` must lie in (0, 1], found {share}."
            )
        check_integer("ProportionalTailAverage", "blocks", blocks, 1)
        self.share = share
        # As it is written: 0.07 of 100 is 7, while 0.07 * 100 is a little more.
        self._share = fractions.Fraction(repr(float(share)))
        self.blocks = blocks
        self._block_length = 1
        self._sums: list[WeightSum] = []

    def add(self, weights: Weights) -> None:
        full = not self._sums or self._sums[-1].count == self._block_length
        if full and len(self._sums) == 2 * self.blocks:
            for earlier, later in zip(self._sums[::2], self._sums[1::2], strict=True):
                earlier.join(later)
            self._sums = self._sums[::2]
            self._block_length *= 2
        if full:
            self._sums.append(WeightSum())
        self._sums[-1].add(weights)
        held = sum(block.count for block in self._sums)
        # What the tail has left never comes back: its start only moves on.
        while held - self._sums[0].count >= self._wanted(self.steps):
            held -= self._sums.pop(0).count

    def proposal(self, weights: Weights) -> tuple[Weights, int]:
        if not self._sums:
            return weights, 1
        wanted, length = self._wanted(self.steps), 0
        mean: list[Any] = []
        for block in reversed(self._sums):
            taken = min(block.count, wanted - length)
            if not taken:
                break
            length += taken
            part, share = block.mean(), taken / length
            mean = (
                [old + (new - old) * share for old, new in zip(mean, part, strict=True)]
                if mean
                else part
            )
        return mean, length

    def _wanted(self, steps: int) -> int:
        return math.ceil(self._share * steps)

    def get_state(self) -> dict[str, Any]:
        return {
            **super().get_state(),
            "block_length": self._block_length,
            "sums": [block.get_state() for block in self._sums],
        }

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        super().set_state(state, on_device)
        self._block_length = state["block_length"]
        self._sums = []
        for block in state["sums"]:
            self._sums.append(WeightSum())
            self._sums[-1].set_state(block, on_device)

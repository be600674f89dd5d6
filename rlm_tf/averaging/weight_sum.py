"""Sums of lists of arrays, in the memory of the device or of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Weights = Sequence[Any]

# Additions to one block.
_BLOCK = 256
_DTYPES = (tf.float32, tf.float64)


class WeightSum:
    """A running sum of lists of arrays of fixed shapes.

    TensorFlow's tensors and variables are added up in variables where they are, NumPy
    arrays in NumPy arrays; the first list added decides. Sums have single precision at
    least, whatever the weights have. One addition passes once over the weights and once
    over the sum of a block; every 256 additions the block goes to the total. So errors
    do not pile up over hundreds of thousands of steps: relative to the mean they stay
    below `(256 + n / 256) 2^-24` after n of them, and a running mean would pass over
    its arrays more often.

    Attributes:
        count: Number of lists added.
    """

    def __init__(self) -> None:
        self.count = 0
        self._block: list[Any] = []
        self._in_block = 0
        self._total: list[Any] = []

    def add(self, weights: Weights) -> None:
        """Adds a list of arrays.

        Raises:
            ValueError: If their number or shapes are not those of the first list.
        """
        if self.count:
            check_like(weights, self._block or self._total)
        if self._block:
            _add(self._block, weights)
        else:
            self._block = summable(weights)
        self.count += 1
        self._in_block += 1
        if self._in_block == _BLOCK:
            self._flush()

    def join(self, other: WeightSum) -> None:
        """Adds all that another sum has."""
        if other.count:
            self._flush()
            self._block = summable(other.sums())
            self._flush()
            self.count += other.count

    def clear(self) -> None:
        """Empties the sum."""
        self.count = self._in_block = 0
        self._block, self._total = [], []

    def sums(self) -> list[Any]:
        """Returns the sums, new arrays."""
        if not self._total:
            return [_value(part) for part in self._block]
        if not self._block:
            return [_value(part) for part in self._total]
        return [
            _value(total) + _value(part)
            for total, part in zip(self._total, self._block, strict=True)
        ]

    def mean(self) -> list[Any]:
        """Returns the mean of what was added, new arrays.

        Raises:
            ValueError: If nothing was added.
        """
        return self.mean_with([], 0)

    def mean_with(self, others: Weights, count: int) -> list[Any]:
        """Returns the mean of what was added and of `count` lists of mean `others`."""
        total = self.count + count
        if not total:
            raise ValueError("WeightSum: nothing was added, so there is no mean.")
        if not count:
            return [part / total for part in self.sums()]
        if not self.count:
            return copies(others)
        return [
            part / total + _value(other) * (count / total)
            for part, other in zip(self.sums(), others, strict=True)
        ]

    def get_state(self) -> dict[str, Any]:
        """Returns count and sums, for a checkpoint."""
        return {
            "count": self.count,
            "in_block": self._in_block,
            "block": to_numpy(self._block),
            "total": to_numpy(self._total),
        }

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        """Takes over what `get_state` returned."""
        self.count = state["count"]
        self._in_block = state["in_block"]
        self._block, self._total = (
            as_variables(state[name]) if on_device else to_numpy(state[name])
            for name in ("block", "total")
        )

    def _flush(self) -> None:
        if self._block:
            if self._total:
                _add(self._total, self._block)
            else:
                self._total = self._block
        self._block, self._in_block = [], 0


def summable(weights: Weights) -> list[Any]:
    """Returns what lists like this one can be added to: variables or NumPy arrays."""
    if any(_is_tensorflow(weight) for weight in weights):
        tensors = [tf.convert_to_tensor(weight) for weight in weights]
        return as_variables(
            [tf.cast(t, tf.float32) if t.dtype not in _DTYPES else t for t in tensors]
        )
    arrays = [np.array(weight) for weight in weights]
    # Integers are what someone wrote by hand: 1 for 1.0.
    return [
        array.astype(np.float64)
        if array.dtype.kind in "iub"
        else array.astype(np.float32)
        if array.dtype not in (np.float32, np.float64)
        else array
        for array in arrays
    ]


def as_variables(arrays: Weights) -> list[tf.Variable]:
    """Returns new variables with the values of arrays."""
    return [tf.Variable(array, trainable=False) for array in arrays]


def copies(weights: Weights) -> list[Any]:
    """Returns what later changes of variables and arrays leave alone."""
    return [
        tf.identity(weight) if _is_tensorflow(weight) else np.array(weight)
        for weight in weights
    ]


def _add(sums: list[Any], weights: Weights) -> None:
    if isinstance(sums[0], tf.Variable):
        _add_tensors(sums, [tf.convert_to_tensor(weight) for weight in weights])
        return
    for total, weight in zip(sums, weights, strict=True):
        np.add(total, np.asarray(weight).astype(total.dtype, copy=False), out=total)


@tf.function(autograph=False, reduce_retracing=True)
def _add_tensors(sums: list[tf.Variable], weights: list[tf.Tensor]) -> None:
    for total, weight in zip(sums, weights, strict=True):
        total.assign_add(tf.cast(weight, total.dtype))


def check_like(weights: Weights, others: Weights) -> None:
    """Raises ValueError unless two lists have arrays of the same shapes."""
    shapes = [tuple(np.shape(weight)) for weight in weights]
    expected = [tuple(np.shape(other)) for other in others]
    if shapes != expected:
        raise ValueError(
            "a weight average got weights of other shapes than before: expected "
            f"{expected}, found {shapes}."
        )


def to_numpy(weights: Weights) -> list[np.ndarray]:
    """Returns copies as NumPy arrays."""
    return [np.array(w.numpy() if hasattr(w, "numpy") else w) for w in weights]


def _is_tensorflow(weight: Any) -> bool:
    return tf.is_tensor(weight) or isinstance(weight, tf.Variable)


def _value(value: Any) -> Any:
    return tf.identity(value) if isinstance(value, tf.Variable) else np.array(value)

"""Sums of lists of arrays, in the memory of the device or of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Weights = Sequence[Any]


class WeightSum:
    """A running sum of lists of arrays of fixed shapes.

    TensorFlow's tensors and variables are added up in variables where they are, NumPy
    arrays in NumPy arrays; the first list added decides. One addition reads the weights
    once and passes once over the sum; a running mean would pass over it more often, and
    it would lose small changes after many steps. In single precision the relative error
    of a sum of n terms is about `sqrt(n) 2^-24`.

    Attributes:
        count: Number of lists added.
    """

    def __init__(self) -> None:
        self.count = 0
        self._sums: list[Any] = []

    def add(self, weights: Weights) -> None:
        """Adds a list of arrays.

        Raises:
            ValueError: If their number or shapes are not those of the first list.
        """
        self.count += 1
        if self._sums:
            check_like(weights, self._sums)
            if isinstance(self._sums[0], tf.Variable):
                _add(self._sums, [tf.convert_to_tensor(w) for w in weights])
            else:
                for total, array in zip(self._sums, weights, strict=True):
                    np.add(total, np.asarray(array), out=total)
            return
        if any(tf.is_tensor(w) or isinstance(w, tf.Variable) for w in weights):
            self._sums = [
                tf.Variable(tf.convert_to_tensor(w), trainable=False) for w in weights
            ]
        else:
            self._sums = [_floating(array) for array in weights]

    def clear(self) -> None:
        """Empties the sum."""
        self.count = 0
        self._sums = []

    def sums(self) -> list[Any]:
        """Returns the sums themselves, not copies."""
        return [_as_array(s) for s in self._sums]

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
            return [_as_array(s) / total for s in self._sums]
        if not self.count:
            return [_as_array(other) + 0 for other in others]
        return [
            _as_array(s) / total + _as_array(other) * (count / total)
            for s, other in zip(self._sums, others, strict=True)
        ]

    def get_state(self) -> dict[str, Any]:
        """Returns count and sums, for a checkpoint."""
        return {"count": self.count, "sums": to_numpy(self._sums)}

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        """Takes over what `get_state` returned."""
        self.count = state["count"]
        self._sums = [np.array(array) for array in state["sums"]]
        if on_device:
            self._sums = [tf.Variable(array, trainable=False) for array in self._sums]


@tf.function(autograph=False, reduce_retracing=True)
def _add(sums: list[tf.Variable], weights: list[tf.Tensor]) -> None:
    for total, weight in zip(sums, weights, strict=True):
        total.assign_add(weight)


def check_like(weights: Weights, others: Weights) -> None:
    """Raises ValueError unless two lists have arrays of the same shapes."""
    shapes = [tuple(weight.shape) for weight in weights]
    expected = [tuple(other.shape) for other in others]
    if shapes != expected:
        raise ValueError(
            "a weight average got weights of other shapes than before: expected "
            f"{expected}, found {shapes}."
        )


def to_numpy(weights: Weights) -> list[np.ndarray]:
    """Returns copies as NumPy arrays."""
    return [np.array(w.numpy() if hasattr(w, "numpy") else w) for w in weights]


def _as_array(value: Any) -> Any:
    return tf.convert_to_tensor(value) if isinstance(value, tf.Variable) else value


def _floating(array: Any) -> np.ndarray:
    array = np.array(array)
    if not np.issubdtype(array.dtype, np.floating):
        return array.astype(np.float64)
    return array

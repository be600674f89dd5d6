"""What latent-variable models share: parts in their files, decoders, checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.row_weights import WeightsOfRows


class LatentVariableModel(WeightsOfRows):
    """Base class: saves and restores its parts, and takes weights of rows without y.

    Each of a subclass's `part_names` is an attribute and an argument of the
    constructor. Parts that make weights when they are first called have them in a file,
    too, if x is one tensor: a loaded model runs once before it gets its weights.
    """

    part_names: ClassVar[tuple[str, ...]]
    _input: dict[str, Any] | None = None

    def run_parts(self, x: Any) -> None:
        """Calls every part once, on a batch."""
        raise NotImplementedError(f"{type(self).__name__} has no `run_parts`.")

    def remember_input(self, x: Any) -> None:
        """Keeps shape and dtype of a batch for files; subclasses call it in `call`."""
        if tf.is_tensor(x) and x.shape.rank is not None:
            shape = [None, *x.shape.as_list()[1:]]
            self._input = {"shape": shape, "dtype": x.dtype.name}

    # === Weights of rows ===

    def arranged(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Returns y, or what stands for it, and the weights of rows.

        Keras gives weights the structure of y, and drops those of arrays without y.
        """
        if sample_weight is not None and y is None:
            first = keras.tree.flatten(x)[0]
            y = np.zeros(first.shape[0]) if hasattr(first, "shape") else None
        return y, sample_weight

    def row_weights(self, x: Any, sample_weight: Any) -> tf.Tensor:
        """Returns the weights of a batch's rows, float32 `[B]`.

        Raises:
            ValueError: If there is not one weight a row, as far as a graph knows.
        """
        first = tf.nest.flatten(x)[0]
        if sample_weight is None:
            return tf.ones([tf.shape(first)[0]])
        weights = tf.cast(sample_weight, tf.float32)
        shape = weights.shape
        if shape.rank is not None and not (
            shape.is_compatible_with(first.shape[:1])
            or shape.is_compatible_with([*first.shape[:1], 1])
        ):
            raise ValueError(
                f"{type(self).__name__}: weights must be one a row, "
                f"{first.shape[:1].as_list()}, found shape {shape.as_list()}."
            )
        return tf.reshape(weights, [-1])

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        parts = {
            name: keras.saving.serialize_keras_object(getattr(self, name))
            for name in self.part_names
        }
        return {**super().get_config(), **parts, "input": self._input}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        # Not an argument: files of models that were never called have none.
        config = dict(config)
        known = config.pop("input", None)
        model = super().from_config(config, custom_objects)
        if known is not None:
            shape = [size or 1 for size in known["shape"]]
            model.run_parts(tf.zeros(shape, known["dtype"]))
        return model


# === Decoders ===


def log_likelihood(
    function: str, decoder: Any, z: tf.Tensor, x: Any, training: bool = False
) -> tf.Tensor:
    """Returns `ln p(x|z)` `[K, B]`, nats, single precision or wider.

    Args:
        function: Name of the caller; messages start with it.
        decoder: A layer or model called on latents and x; a functional model of two
            inputs, on a list of both.
        z: `[K, B, ...]`.
        x: A batch.
        training: Whether dropout acts.

    Raises:
        ValueError: If the decoder returns another shape.
    """
    arguments = ([z, x],) if _takes_a_list(decoder) else (z, x)
    found = at_least_single(decoder(*arguments, training=training))
    if found.shape.rank is not None:
        expected = z.shape[:2]
        if found.shape.rank != 2 or not found.shape.is_compatible_with(expected):
            raise ValueError(
                f"{function}: `decoder` must return ln p(x|z) of K samples of B "
                f"examples, [K, B] = {expected.as_list()}, found shape "
                f"{found.shape.as_list()}."
            )
    return found


def _takes_a_list(decoder: Any) -> bool:
    inputs = getattr(decoder, "inputs", None)
    return isinstance(decoder, keras.Model) and len(inputs or ()) > 1


# === Checks ===


def check_layers(model: str, **parts: Any) -> None:
    """Raises ValueError unless all parts are layers or models."""
    for name, part in parts.items():
        if not isinstance(part, keras.layers.Layer):
            raise ValueError(
                f"{model}: `{name}` must be a Keras layer or model, found "
                f"{type(part).__name__}."
            )


def check_latent_size(
    model: str, decoder: Any, part: str, event_shape: Sequence[int]
) -> None:
    """Raises ValueError if a decoder says that it takes latents of another size.

    Args:
        model: Name of the model; the message starts with it.
        decoder: Those without `latent_size` take any latents.
        part: Name of the part that makes the latents.
        event_shape: Of one example's latents.
    """
    expected, found = math.prod(event_shape), getattr(decoder, "latent_size", None)
    if found not in (None, expected):
        raise ValueError(
            f"{model}: `decoder` takes latents of {found} entries, `{part}` makes "
            f"{expected} ({list(event_shape)} an example)."
        )


def checked_number(model: str, option: str, value: Any) -> float:
    """Returns an option as one of Python's numbers, which files can have.

    Raises:
        ValueError: If it is none.
    """
    if not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"{model}: `{option}` must be one number, found {value!r}.")


def checked_counts(model: str, option: str, value: Any) -> int | tuple[int, int]:
    """Returns K or (N, M), numbers of samples, as Python's integers.

    Raises:
        ValueError: If it is neither.
    """
    if not isinstance(value, Sequence):
        check_integer(model, option, value, 1)
        return int(value)
    if len(value) != 2:
        raise ValueError(
            f"{model}: `{option}` must be one integer or two, found {value}."
        )
    for place, count in enumerate(value):
        check_integer(model, f"{option}[{place}]", count, 1)
    return int(value[0]), int(value[1])

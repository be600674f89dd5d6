"""Models that are made of other layers or models, which their files contain."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import keras
import tensorflow as tf

from rlm_tf.models.objective_model import ObjectiveModel


class ModelOfParts(ObjectiveModel):
    """Base class: saves and restores the parts that a subclass names.

    Each of `part_names` is an attribute and an argument of the constructor. Parts that
    make weights when they are first called have them in a file, too, if x is one
    tensor: a model that is loaded runs once before it gets its weights.
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

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        parts = {
            name: keras.saving.serialize_keras_object(getattr(self, name))
            for name in self.part_names
        }
        return {**super().get_config(), **parts, "input": self._input}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        config = dict(config)
        parts = {
            name: keras.saving.deserialize_keras_object(
                config[name], custom_objects=custom_objects
            )
            for name in cls.part_names
        }
        # Not an argument: files of models that were never called have none.
        known = config.pop("input", None)
        model = cls(**{**config, **parts})
        if known is not None:
            shape = [size or 1 for size in known["shape"]]
            model.run_parts(tf.zeros(shape, known["dtype"]))
        return model

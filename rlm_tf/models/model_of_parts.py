"""Models that are made of other layers or models, which their files contain."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import keras

from rlm_tf.models.objective_model import ObjectiveModel


class ModelOfParts(ObjectiveModel):
    """Base class: saves and restores the parts that a subclass names.

    Each of `part_names` is an attribute and an argument of the constructor.
    """

    part_names: ClassVar[tuple[str, ...]]

    def get_config(self) -> dict[str, Any]:
        parts = {
            name: keras.saving.serialize_keras_object(getattr(self, name))
            for name in self.part_names
        }
        return {**super().get_config(), **parts}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        parts = {
            name: keras.saving.deserialize_keras_object(
                config[name], custom_objects=custom_objects
            )
            for name in cls.part_names
        }
        return cls(**{**config, **parts})

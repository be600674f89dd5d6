"""A model that holds parts by name, so that one file keeps them all."""

from __future__ import annotations

from typing import Any

import keras


@keras.saving.register_keras_serializable("rlm_tf_tests")
class Shelf(keras.Model):
    """Layers and metrics as attributes of the given names; it computes nothing.

    Args:
        parts: Layers and metrics by name.
        **kwargs: Of `keras.Model`.
    """

    def __init__(self, parts: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.names = tuple(parts)
        for name, part in parts.items():
            setattr(self, name, part)
        self.built = True

    def build_from_config(self, config: dict[str, Any]) -> None:
        """The parts are built from their own."""

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        parts = {name: serialize(getattr(self, name)) for name in self.names}
        return {**super().get_config(), "parts": parts}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Shelf:
        made = keras.saving.deserialize_keras_object
        parts = {name: made(part) for name, part in config.pop("parts").items()}
        return cls(parts, **config)

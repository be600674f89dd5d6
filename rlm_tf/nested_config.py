"""Configurations that hold other Keras objects."""

from __future__ import annotations

from typing import Any, Self

import keras


class NestedConfig:
    """Mixin of layers and models whose arguments are Keras objects themselves.

    `from_config` turns whatever `keras.saving.serialize_keras_object` wrote, also in
    lists and dictionaries, back into objects and passes it to the constructor. It
    precedes the Keras class among the bases.
    """

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Returns an object like the one whose `get_config` gave `config`."""
        return cls(**made_objects(config, custom_objects))


def made_objects(config: dict[str, Any], custom_objects: Any = None) -> dict[str, Any]:
    """Returns a configuration with objects in place of their descriptions."""
    return {name: _made(value, custom_objects) for name, value in config.items()}


def _made(value: Any, custom_objects: Any) -> Any:
    if isinstance(value, dict) and "class_name" in value and "config" in value:
        return keras.saving.deserialize_keras_object(
            value, custom_objects=custom_objects
        )
    if isinstance(value, dict):
        return {name: _made(item, custom_objects) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_made(item, custom_objects) for item in value)
    return value

"""Turns a frozen dataclass of settings into absl flags."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from typing import Any, TypeVar

from absl import flags

Config = TypeVar("Config")


def setting(default: Any, help: str) -> Any:
    """A dataclass field with a default and the help text of its flag."""
    return dataclasses.field(default=default, metadata={"help": help})


def define_flags(config_class: type) -> None:
    """Defines one flag a field; a flag that is not given leaves the preset's value."""
    hints = typing.get_type_hints(config_class)
    for field in dataclasses.fields(config_class):
        kind, optional = _kind(hints[field.name])
        default = "none" if field.default is None else field.default
        help_text = f"{field.metadata['help']} [default: {default}]"
        if optional:
            help_text += " ('none' for none)"
        if kind is bool:
            flags.DEFINE_boolean(field.name, None, help_text)
        else:
            flags.DEFINE_string(field.name, None, help_text)
        # `--help` shows the flags of the main module, which absl knows by this name.
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[field.name])


def config_from_flags(preset: Config) -> Config:
    """Returns the preset with the given flags put in.

    Raises:
        ValueError: If a value cannot be read as its field's type.
    """
    hints = typing.get_type_hints(type(preset))
    changes = {}
    for field in dataclasses.fields(preset):  # type: ignore[arg-type]
        value = flags.FLAGS[field.name].value
        if value is not None:
            changes[field.name] = _read(field.name, value, hints[field.name])
    return dataclasses.replace(preset, **changes)  # type: ignore[type-var]


def _kind(hint: Any) -> tuple[type, bool]:
    if isinstance(hint, types.UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return kinds[0], True
    return hint, False


def _read(name: str, value: Any, hint: Any) -> Any:
    kind, optional = _kind(hint)
    if kind is bool or not isinstance(value, str):
        return value
    if optional and value.lower() == "none":
        return None
    try:
        return kind(value)
    except ValueError:
        raise ValueError(
            f"--{name} must be a {kind.__name__}, found {value!r}."
        ) from None

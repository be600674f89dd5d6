"""Turns frozen dataclasses of settings into absl flags, and flags into settings."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, TypeVar

from absl import flags

Config = TypeVar("Config")


def setting(default: Any, help: str) -> Any:
    """A dataclass field with a default and the help text of its flag."""
    return dataclasses.field(default=default, metadata={"help": help})


def define_flags(
    config_class: type,
    without: tuple[str, ...] = (),
    flag_values: flags.FlagValues = flags.FLAGS,
) -> None:
    """Defines one flag a field; a flag that is not given leaves the preset's value.

    Args:
        config_class: The dataclass.
        without: Fields that get no flag.
        flag_values: Where the flags are put.
    """
    hints = typing.get_type_hints(config_class)
    for field in dataclasses.fields(config_class):
        if field.name in without:
            continue
        kind, optional = _kind(hints[field.name])
        help_text = field.metadata["help"]
        if optional:
            help_text += " ('none' for none)"
        if typing.get_origin(kind) is tuple:
            help_text += " (comma-separated)"
        if kind is bool:
            flags.DEFINE_boolean(field.name, None, help_text, flag_values)
        else:
            flags.DEFINE_string(field.name, None, help_text, flag_values)


def config_from_flags(
    preset: Config, flag_values: flags.FlagValues = flags.FLAGS
) -> Config:
    """Returns the preset with the given flags put in.

    Raises:
        ValueError: If a value cannot be read as its field's type.
    """
    hints = typing.get_type_hints(type(preset))
    changes = {}
    for name in given_flags(type(preset), flag_values):
        changes[name] = _read(name, flag_values[name].value, hints[name])
    return dataclasses.replace(preset, **changes)  # type: ignore[type-var]


def given_flags(
    config_class: type, flag_values: flags.FlagValues = flags.FLAGS
) -> list[str]:
    """Returns the fields whose flags are given on the command line."""
    names = [field.name for field in dataclasses.fields(config_class)]
    return [
        name
        for name in names
        if name in flag_values and flag_values[name].value is not None
    ]


def flag_text(value: Any) -> str:
    """Returns a setting as it is given to a flag."""
    if isinstance(value, list | tuple):
        return ",".join(map(flag_text, value))
    return "none" if value is None else str(value)


def _kind(hint: Any) -> tuple[type, bool]:
    """Returns the type of a field's values, and whether None is one of them."""
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
    if typing.get_origin(kind) is tuple:
        member = typing.get_args(kind)[0]
        return tuple(read_as(name, item, member) for item in value.split(",") if item)
    return read_as(name, value, kind)


def read_as(name: str, value: str, kind: type) -> Any:
    """Returns the value of flag `name` as an int, a float or a str.

    Raises:
        ValueError: If it is none.
    """
    try:
        return kind(value)
    except ValueError:
        raise ValueError(
            f"--{name} must be of type {kind.__name__}, found {value!r}."
        ) from None

"""Turns frozen dataclasses of settings into absl flags, and runs binaries."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from absl import app, flags

from experiments.quiet import silence_tensorflow

Config = TypeVar("Config")


def setting(default: Any, help: str) -> Any:
    """A dataclass field with a default and the help text of its flag."""
    return dataclasses.field(default=default, metadata={"help": help})


def start(main: Callable[[list[str]], Any]) -> None:
    """Runs a binary and ends with it; a mistake in a flag is told in one line.

    Args:
        main: Gets what is no flag, see `refuse_arguments`.
    """

    def begin(arguments: list[str]) -> Any:
        if (
            "strategy" in flags.FLAGS
            and flags.FLAGS.strategy == "multi_worker_mirrored"
        ):
            # First of all: TensorFlow wants to know before any of its operations.
            from experiments import run_workers

            with user_errors():
                run_workers.workers()
        return main(arguments)

    app.run(begin, flags_parser=_parse)


def _parse(arguments: list[str]) -> list[str]:
    try:
        return flags.FLAGS(arguments)
    except flags.Error as error:
        # What a flag may be is over several lines at times.
        message = " ".join(str(error).split())
        sys.exit(f"error: {message} (--help lists the flags)")


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Ends the program with one line where a user's mistake was found.

    So ends training that diverges, or that Ctrl-C interrupts (with status 130).
    `--verbosity=1` shows where it happened.
    """
    try:
        yield
    except KeyboardInterrupt:
        print(f"interrupted{_how_to_go_on()}", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, ArithmeticError) as error:
        # Not earlier: importing TensorFlow takes seconds.
        from rlm_tf.training import TrainingDivergedError

        expected = isinstance(error, ValueError | OSError | TrainingDivergedError)
        if not expected or int(flags.FLAGS["verbosity"].value or 0) > 0:
            raise
        sys.exit(f"error: {error}")


def _how_to_go_on() -> str:
    if "resume" not in flags.FLAGS:
        return "."
    resume = flags.FLAGS["resume"]
    if resume.value:
        return "; the same command goes on."
    word = "without --noresume" if resume.default else "with --resume"
    return f"; the same command {word} goes on."


def refuse_arguments(arguments: list[str]) -> None:
    """Ends the program if anything but flags was given, such as `--resume false`.

    Args:
        arguments: What absl gives to `main`: the program, then what it did not read.
    """
    if len(arguments) > 1:
        sys.exit(
            f"error: unexpected arguments: {' '.join(arguments[1:])} (--help lists the "
            "flags)"
        )


def run(main: Callable[[Any], Any], config_class: type) -> None:
    """Runs a binary whose flags are the fields of a dataclass, with its defaults.

    Tuples become comma-separated lists, of integers where the annotation says so.

    Args:
        main: Gets the settings; ValueError and OSError from it are a user's mistake.
        config_class: The dataclass; a field's `metadata["help"]` is its help.
    """
    hints = typing.get_type_hints(config_class)
    fields = dataclasses.fields(config_class)
    define: dict[type, Callable[..., Any]] = {
        bool: flags.DEFINE_boolean,
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
        str: flags.DEFINE_string,
    }
    for field in fields:
        text = field.metadata["help"]
        if isinstance(field.default, tuple):
            default = ",".join(map(str, field.default))
            flags.DEFINE_list(field.name, default, text)
        else:
            define[type(field.default)](field.name, field.default, text)
        show_in_help(field.name)

    def from_flags(arguments: list[str]) -> None:
        refuse_arguments(arguments)
        silence_tensorflow()
        with user_errors():
            values = {}
            for field in fields:
                value = flags.FLAGS[field.name].value
                if isinstance(field.default, tuple):
                    kind = typing.get_args(hints[field.name])[0]
                    items = value or ()
                    value = tuple(read_as(field.name, item, kind) for item in items)
                values[field.name] = value
            main(config_class(**values))

    start(from_flags)


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
        help_text = f"{field.metadata['help']} [the preset's]"
        if optional:
            help_text += " ('none' for none)"
        if typing.get_origin(kind) is tuple:
            help_text += " (comma-separated)"
        if kind is bool:
            flags.DEFINE_boolean(field.name, None, help_text, flag_values)
        else:
            flags.DEFINE_string(field.name, None, help_text, flag_values)
        show_in_help(field.name, flag_values)


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


def show_in_help(name: str, flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Lets `--help` show a flag that another module than the main one defines."""
    # The name by which absl knows the main module.
    flag_values.register_key_flag_for_module(sys.argv[0], flag_values[name])


def _kind(hint: Any) -> tuple[type, bool]:
    """Returns the type of a field's values, and whether None is one of them."""
    if isinstance(hint, types.UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return kinds[0], True
    return hint, False


def _read(name: str, value: Any, hint: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        member = typing.get_args(hint)[0]
        return tuple(read_as(name, item, member) for item in value.split(",") if item)
    kind, optional = _kind(hint)
    if kind is bool or not isinstance(value, str):
        return value
    if optional and value.lower() == "none":
        return None
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

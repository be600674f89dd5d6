"""How every command starts.

Flags are defined and read, and help is given, before TensorFlow or anything else that
takes seconds is imported: what a program does is imported when it begins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from absl import app, flags

from rlm_tf.command_line.flags import config_from_flags, define_flags, flag_text
from rlm_tf.command_line.quiet import silence_tensorflow
from rlm_tf.diverged_error import TrainingDivergedError

FLAGS = flags.FLAGS

_HELP = ("help", "helpshort", "helpfull", "h", "?")
_COLUMNS = 88


@dataclasses.dataclass(frozen=True)
class Program:
    """What a command is.

    Attributes:
        name: Its name, `rlm_tf train` for one.
        about: What it is for, as `--help` says it.
        main: What it does once flags are read; imports what it needs itself.
        presets: Settings by name, instances of one frozen dataclass; `--preset` chooses
            one, `small` if there is no other word, and every field is a flag.
        settings: Of a binary without presets: one instance, whose fields are flags.
        define: Defines the flags that are no settings.
        without: Fields that are no flags.
        check: Raises ValueError or OSError for settings that cannot be; it is asked
            before anything that takes seconds.
        tensorflow: Whether it needs TensorFlow.
        fixed: By preset, what it chooses that no flag changes; a dataclass instance.
    """

    name: str
    about: str
    main: Callable[[], Any]
    presets: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Any = None
    define: Callable[[], None] | None = None
    without: tuple[str, ...] = ()
    check: Callable[[Any], None] | None = None
    tensorflow: bool = True
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def command(self) -> str:
        """What a person types."""
        return self.name

    def prepare(self) -> None:
        """Does what must come before the first operation of TensorFlow."""


def start(program: Program) -> None:
    """Runs a program and ends with it; a user's mistake is told in one line."""
    before = set(FLAGS)
    if program.presets:
        flags.DEFINE_enum(
            "preset", "small", sorted(program.presets), "Settings to start from."
        )
    if program.define is not None:
        program.define()
    own = [name for name in FLAGS if name not in before]
    preset = program.settings or next(iter(program.presets.values()), None)
    if preset is not None:
        define_flags(type(preset), program.without)

    def read(arguments: list[str]) -> list[str]:
        if any(_name_of(word) in _HELP for word in arguments[1:]):
            preset = _preset_in(arguments)
            known = sorted(program.presets or program.fixed)
            if preset is not None and known and preset not in known:
                sys.exit(
                    f"error: --preset must be one of {', '.join(known)}; found "
                    f"{preset!r}."
                )
            print(help_text(program, own, preset))
            sys.exit(0)
        return read_flags(arguments)

    def begin(arguments: list[str]) -> None:
        refuse_arguments(arguments)
        settings = None
        with user_errors():
            if preset is not None:
                # Before anything that takes seconds: a value may be no number.
                settings = config_from_flags(preset)
                if program.check is not None:
                    program.check(settings)
        if program.tensorflow:
            silence_tensorflow()
        with user_errors(getattr(settings, "resume", None)):
            program.prepare()
            program.main()

    app.run(begin, flags_parser=read)


def read_flags(arguments: list[str]) -> list[str]:
    """Reads flags; ends the program with one line at a mistake.

    Args:
        arguments: The program, then what it was given.

    Returns:
        The program, then what is no flag.
    """
    try:
        return FLAGS(arguments)
    except flags.Error as error:
        # What a flag may be is over several lines at times.
        message = " ".join(str(error).split())
        sys.exit(f"error: {message} (--help lists the flags)")


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


# === Help ===


def help_text(program: Program, own: list[str], preset: str | None = None) -> str:
    """Returns what `--help` prints: the flags, and the values of a preset.

    Args:
        program: The program.
        own: Its flags that are no settings.
        preset: Name of the preset whose values are shown; none: the default one.
    """
    lines = [program.command, "", program.about.strip(), ""]
    lines += [line for name in own for line in _described(name, FLAGS[name].default)]
    settings = program.settings
    if program.presets:
        shown = preset if preset in program.presets else FLAGS["preset"].default
        settings = program.presets[str(shown)]
        lines += ["", f"Settings, with the values of --preset={shown}:"]
    if settings is not None:
        for field in dataclasses.fields(settings):
            if field.name not in program.without:
                lines += _described(
                    field.name, getattr(settings, field.name), setting=True
                )
    if program.fixed:
        shown = preset or settings.preset
        lines += ["", f"What --preset={shown} chooses besides:"]
        for name, value in dataclasses.asdict(program.fixed[shown]).items():
            lines.append(f"  {name} = {flag_text(value)}")
    lines += ["", "--verbosity=1 shows where a mistake was found."]
    return "\n".join(lines)


def _described(name: str, value: Any, setting: bool = False) -> Iterator[str]:
    flag = FLAGS[name]
    if flag.boolean:
        yield f"  --[no]{name}  [{'yes' if value else 'no'}]"
    elif value is None and flag.default is None and not setting:
        yield f"  --{name}"
    else:
        yield f"  --{name}={flag_text(value)}"
    # absl puts the choices in front.
    text = re.sub(r"^<[^>]*>: ", "", flag.help or "")
    if isinstance(flag, flags.EnumFlag):
        text = f"{text} One of: {', '.join(flag.parser.enum_values)}."
    yield textwrap.fill(
        text,
        _COLUMNS,
        initial_indent=" " * 6,
        subsequent_indent=" " * 6,
        break_on_hyphens=False,
    )


def _name_of(word: str) -> str | None:
    """Returns the name of a flag from what gives it; None if it is no flag."""
    return word.lstrip("-").partition("=")[0] if word.startswith("-") else None


def _preset_in(arguments: list[str]) -> str | None:
    for place, word in enumerate(arguments):
        if _name_of(word) == "preset":
            _, given, value = word.partition("=")
            return value if given else next(iter(arguments[place + 1 :]), None)
    return None


# === Mistakes ===


@contextlib.contextmanager
def user_errors(resumes: bool | None = None) -> Iterator[None]:
    """Ends the program with one line where a user's mistake was found.

    So ends training that diverges, or that Ctrl-C interrupts (with status 130).
    `--verbosity=1` shows where it happened.

    Args:
        resumes: Whether the same command goes on, where that is a setting.
    """
    try:
        yield
    except KeyboardInterrupt:
        print(f"interrupted{_how_to_go_on(resumes)}", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, ArithmeticError) as error:
        expected = isinstance(error, ValueError | OSError | TrainingDivergedError)
        if not expected or int(FLAGS["verbosity"].value or 0) > 0:
            raise
        sys.exit(f"error: {error}")


def _how_to_go_on(resumes: bool | None) -> str:
    if "resume" not in FLAGS:
        return "."
    if "overwrite" in FLAGS and FLAGS["overwrite"].value:
        return "; the same command without --overwrite goes on."
    if resumes:
        return "; the same command goes on."
    resume = FLAGS["resume"]
    # A flag that is a setting has no default of its own.
    if resume.value:
        return "; the same command goes on."
    word = "without --noresume" if resume.default else "with --resume"
    return f"; the same command {word} goes on."

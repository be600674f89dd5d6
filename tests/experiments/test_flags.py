"""What a person is told on the command line: one line, of flags that there are."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from absl import flags

from experiments.benchmark.config import Config as BenchmarkConfig
from experiments.imm_lm import report
from experiments.kit.rows import Rows, check_any_rows
from rlm_tf.command_line import program as binaries
from rlm_tf.command_line.flags import config_from_flags, define_flags, setting
from tests.experiments.binaries import ROOT


@pytest.fixture
def given(monkeypatch):
    """Flags of a binary of this test."""
    values = flags.FlagValues()
    flags.DEFINE_enum("preset", "small", ["small", "smoke"], "", flag_values=values)
    flags.DEFINE_integer("trials", 1, "", lower_bound=1, flag_values=values)
    flags.DEFINE_integer("verbosity", 0, "", flag_values=values)
    monkeypatch.setattr(binaries, "FLAGS", values)
    return values


def test_an_interrupt_of_a_program_that_resumes_by_its_settings(monkeypatch, capsys):
    values = flags.FlagValues()
    flags.DEFINE_boolean("resume", None, "", flag_values=values)
    values(["binary"])
    monkeypatch.setattr(binaries, "FLAGS", values)
    with pytest.raises(SystemExit), binaries.user_errors(resumes=True):
        raise KeyboardInterrupt
    said = capsys.readouterr().err
    assert said == "interrupted; the same command goes on.\n"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of every kind."""

    sizes: tuple[int, ...] = setting((1,), "Some.")
    rates: tuple[float, ...] | None = setting(None, "Some, or none.")
    on: bool | None = setting(None, "Whether.")


def test_lists_may_be_none_and_flags_win():
    values = flags.FlagValues()
    define_flags(Settings, flag_values=values)
    values(["binary", "--rates=0.5,0.1", "--noon"])
    assert config_from_flags(Settings(), values) == Settings((1,), (0.5, 0.1), False)
    values(["binary", "--rates=none", "--sizes=3,4"])
    assert config_from_flags(Settings(), values).rates is None
    values(["binary", "--rates=0.5,many"])
    with pytest.raises(ValueError, match="--rates must be of type float, found 'many'"):
        config_from_flags(Settings(), values)


# === Mistakes ===


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--armz=3", "Unknown command line flag 'armz'"),
        ("--presett=smoke", r"Did you mean: preset \?"),
        ("--preset=huge", "flag --preset=huge: value should be one of <small|smoke>"),
        ("--trials=0", "flag --trials=0: 0 is not a positive integer"),
        ("--trials=many", "flag --trials=many: invalid literal"),
        ("--trials", "Missing value for flag --trials"),
        ("--nopreset", "Unknown command line flag 'nopreset'"),
    ],
)
def test_mistakes_in_flags_are_one_line(given, argument, message):
    with pytest.raises(SystemExit, match=message) as caught:
        binaries.read_flags(["binary", argument])
    said = str(caught.value)
    assert said.startswith("error: ") and said.endswith("(--help lists the flags)")
    assert "\n" not in said


def test_what_is_no_flag_is_refused_in_one_line():
    binaries.refuse_arguments(["binary"])
    with pytest.raises(SystemExit, match=r"^error: unexpected arguments: false x") as e:
        binaries.refuse_arguments(["binary", "false", "x"])
    assert "\n" not in str(e.value)


# === Ctrl-C ===


@pytest.mark.parametrize(
    ("default", "arguments", "said"),
    [
        (None, [], "interrupted."),
        (True, [], "interrupted; the same command goes on."),
        (True, ["--noresume"], "the same command without --noresume goes on"),
        (False, [], "the same command with --resume goes on"),
        (False, ["--resume"], "interrupted; the same command goes on."),
        (True, ["--overwrite"], "the same command without --overwrite goes on"),
    ],
)
def test_an_interrupt_is_one_line(given, capsys, default, arguments, said):
    if default is not None:
        flags.DEFINE_boolean("resume", default, "", flag_values=given)
        flags.DEFINE_boolean("overwrite", False, "", flag_values=given)
    given(["binary", *arguments])
    with pytest.raises(SystemExit) as caught, binaries.user_errors():
        raise KeyboardInterrupt
    assert caught.value.code == 130
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1


def test_wrong_values_are_told_before_anything_is_imported():
    program = (
        "import sys; sys.modules['tensorflow'] = None; sys.modules['keras'] = None\n"
        "import runpy\n"
        "sys.argv = ['x', *sys.argv[1:]]\n"
        "runpy.run_module('experiments.imm_lm', run_name='__main__', alter_sys=True)"
    )

    def run(*given):
        return subprocess.run(
            [sys.executable, "-c", program, *given],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )

    done = run("--width=abc")
    assert done.stderr == "error: --width must be of type int, found 'abc'.\n"
    done = run("--help", "--preset=big")
    said = "error: --preset must be one of paper, small, smoke; found 'big'.\n"
    assert done.stderr == said
    done = run("--help", "--preset=paper")
    assert done.returncode == 0 and "--width=1500" in done.stdout


def test_an_interrupt_while_importing_is_one_line():
    program = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from rlm_tf.command_line.quiet import silence_tensorflow\n"
        "silence_tensorflow()\n"
        "raise KeyboardInterrupt"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stderr == "interrupted.\n"
    # What shells show as 130.
    assert done.returncode == -signal.SIGINT


# === Names of flags in messages ===

_NAMED = re.compile(r"(?<![\w-])--((?:no)?[a-z][a-z_0-9]*)")
# Of absl, and of other programs: git, docker, saved_model_cli.
_OTHERS = {"help", "verbosity"} | {"always", "dirty", "abbrev", "exclude"}
_OTHERS |= {"rm", "mount", "dir", "all"}


def _trees():
    """The modules that define or name flags."""
    for folder in ("experiments", "rlm_tf"):
        for path in sorted(pathlib.Path(ROOT, folder).rglob("*.py")):
            text = path.read_text("utf-8")
            if "--" in text or "DEFINE_" in text or "setting(" in text:
                yield path, ast.parse(text)


def _defined(tree):
    """Returns the flags that a module defines, itself or as fields of settings."""
    for node in ast.walk(tree):
        call = node.value if isinstance(node, ast.AnnAssign) else node
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        if isinstance(node, ast.AnnAssign) and name == "setting":
            yield node.target.id
        elif name.startswith("flags.DEFINE_") and isinstance(
            call.args[0], ast.Constant
        ):
            yield call.args[0].value


def test_every_flag_that_is_named_exists():
    trees = list(_trees())
    known = {name for _, tree in trees for name in _defined(tree)} | _OTHERS
    assert {"arms", "arm", "overwrite", "parts", "resume", "trials"} <= known
    unknown = [
        f"{path.relative_to(ROOT)}:{node.lineno}: --{name}"
        for path, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in _NAMED.findall(node.value)
        if name not in known and name.removeprefix("no") not in known
    ]
    assert not unknown


def test_settings_are_found_by_the_search_for_flags():
    """It reads the source: what it finds there is what the binary defines."""
    path = ROOT / "experiments" / "benchmark" / "config.py"
    found = set(_defined(ast.parse(path.read_text("utf-8"))))
    assert found == set(BenchmarkConfig.__dataclass_fields__)


# === Reports of folders without rows ===


def test_reports_of_nothing_are_errors(tmp_path):
    nothing = {"main": [], "full": []}
    with pytest.raises(ValueError, match=r"--results_dir=.*missing is not a folder"):
        check_any_rows(tmp_path / "missing", nothing)
    with pytest.raises(
        ValueError, match=r"holds no rows: expected .*/rows\.jsonl .*main"
    ):
        check_any_rows(tmp_path, nothing)
    check_any_rows(tmp_path, {"main": [], "full": [{}]})
    rows = Rows(tmp_path, "main")
    rows.write("a", {"name": "a"})
    with pytest.raises(ValueError, match=r"\(row main/a\) .* without config, corpus"):
        rows.read("a", report.NEEDS)

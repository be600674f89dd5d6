"""Mistakes on the command line are told in one line, before anything slow."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import sys

import pytest
from absl import flags

from rlm_tf.command_line.flags import config_from_flags, define_flags
from rlm_tf.commands import main, settings
from rlm_tf.commands.distillation.settings import DistilSettings
from rlm_tf.commands.encoders import settings as encoder_settings
from rlm_tf.commands.information.settings import CoherenceSettings
from rlm_tf.commands.seeds.settings import SeedClassifySettings
from rlm_tf.commands.settings import TrainSettings
from tests.compatibility.names import PAGES, ROOT


@pytest.fixture
def valid(tmp_path):
    (tmp_path / "a.txt").write_text("text\n")
    return TrainSettings(text=str(tmp_path / "a.txt"), output_dir=str(tmp_path / "o"))


def test_valid_settings_pass(valid):
    settings.check_train_settings(valid)
    embedded = dataclasses.replace(valid, text=settings.EMBEDDED)
    settings.check_train_settings(embedded)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": None}, "needs --text"),
        ({"output_dir": None}, "needs --output_dir"),
        ({"text": "/no/such"}, "--text=/no/such: there is no such file"),
        ({"text": "."}, "--text=. is a folder"),
        ({"valid": "v"}, "--valid=v: there is no such file"),
        ({"rule": "wrds"}, "--rule must be one of .*found 'wrds'"),
        ({"minutes": 0.0}, "--minutes must be positive"),
        ({"order": 7}, "--order must be at least 1 and at most 6, found 7"),
        ({"width": 0}, "--width must be at least 1, found 0"),
        ({"dropouts": (0.1, 0.2)}, "--dropouts of --architecture=lstm must be 4 rates"),
        (
            {"dropouts": (0.1, 0.2, 0.3, 0.4), "architecture": "transformer"},
            "must be 2 rates in .*, on inputs and in blocks, on outputs; found 0.1,0.2",
        ),
        ({"architecture": "gru"}, "--architecture must be one of lstm, transformer"),
        (
            {"architecture": "transformer", "width": 130},
            "--width of --architecture=transformer must be a multiple of 8, found 130",
        ),
        ({"dropouts": (0.1, 0.2, 0.3, 1.0)}, "must be 4 rates"),
        ({"coefficient": -1.0}, "--coefficient must be finite"),
        ({"l2": -1.0}, "--l2 must be finite and not negative, found -1.0"),
        ({"weight_decay": float("nan")}, "--weight_decay must be finite"),
        ({"noising": 1.5}, "--noising must lie in 0..1, found 1.5"),
        ({"noising": 0.2, "bmi": True}, "--noising=0.2 and --bmi do not go together"),
        ({"strategy": "tpu"}, "--strategy must be default"),
        ({"ensemble": 0}, "--ensemble must be at least 1 and at most 100, found 0"),
        ({"ensemble": 2, "bmi": True}, "--ensemble=2 and --bmi do not go together"),
    ],
)
def test_mistakes_are_named(valid, options, message):
    with pytest.raises((ValueError, OSError), match=message):
        settings.check_train_settings(dataclasses.replace(valid, **options))


def test_validation_and_test_go_together(valid):
    one = dataclasses.replace(valid, valid=valid.text)
    with pytest.raises(ValueError, match="--valid and --test go together"):
        settings.check_train_settings(one)


def test_an_output_that_is_a_file_is_refused(valid):
    wrong = dataclasses.replace(valid, output_dir=valid.text)
    with pytest.raises(ValueError, match="is a file; expected a folder"):
        settings.check_train_settings(wrong)


def test_folders_without_a_model_are_told_apart(tmp_path):
    with pytest.raises(ValueError, match="is no folder"):
        settings.check_folder(str(tmp_path / "none"), "rlm_tf score")
    with pytest.raises(ValueError, match="`rlm_tf train` wrote none"):
        settings.check_folder(str(tmp_path), "rlm_tf score")
    (tmp_path / settings.SETTINGS).write_text("{}")
    with pytest.raises(ValueError, match="its training has not ended"):
        settings.check_folder(str(tmp_path), "rlm_tf score")


def test_help_and_mistakes_take_no_tensorflow():
    # A program without TensorFlow would fail with a trace.
    code = (
        "import sys; sys.modules['tensorflow'] = None; sys.modules['keras'] = None;"
        "sys.argv = ['rlm_tf', *sys.argv[1:]];"
        "from rlm_tf.commands.main import main; main()"
    )

    def without(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    assert "rlm_tf train " in without().stdout
    for name in main.COMMANDS:
        shown = without(name, "--help")
        assert shown.returncode == 0 and f"rlm_tf {name}" in shown.stdout
    for arguments, message in (
        (("trian",), "error: the command must be one of .*did you mean train"),
        (("train",), "error: rlm_tf train needs --text"),
        (("train", "--txt=a"), "error: Unknown command line flag 'txt'"),
        (("train", "--width=a"), "error: --width must be of type int"),
        (("score", "--model=/no/such"), "error: --model=/no/such is no folder"),
        (("generate", "--model=/", "--samples=0"), "--samples must be at least 1"),
    ):
        found = without(*arguments)
        assert found.returncode == 1
        lines = found.stderr.strip().splitlines()
        assert len(lines) == 1, found.stderr
        assert re.search(message, lines[0]), lines[0]


_COMMAND = re.compile(r"\brlm_tf (\w+)((?: --[\w-]+(?:=(?:\"[^\"]*\"|[^\s`<]*))?)+)")
_SETTINGS = {
    "train": settings.TrainSettings,
    "evaluate": settings.EvaluateSettings,
    "compare": settings.CompareSettings,
    "score": settings.ScoreSettings,
    "generate": settings.GenerateSettings,
    "coherence": CoherenceSettings,
    "distil": DistilSettings,
    "export": settings.ExportSettings,
    "classifier": encoder_settings.ClassifierSettings,
    "pretrain": encoder_settings.PretrainSettings,
    "finetune": encoder_settings.FinetuneSettings,
    "seed_classify": SeedClassifySettings,
    "classify": encoder_settings.ClassifySettings,
    "fill_mask": encoder_settings.FillMaskSettings,
}


def written_commands() -> list[tuple[str, str]]:
    """Returns the commands of the pages and of the Makefile with their flags."""
    found = set()
    for page in (*PAGES, "Makefile"):
        text = (ROOT / page).read_text("utf-8").replace("\\\n", " ")
        text = re.sub(r" +", " ", text)
        found |= set(_COMMAND.findall(text))
    return sorted(found)


def test_the_pages_name_every_command():
    assert {name for name, _ in written_commands()} == set(main.COMMANDS)
    assert set(_SETTINGS) == set(main.COMMANDS)


@pytest.mark.parametrize(("name", "given"), written_commands())
def test_commands_of_the_pages_have_flags_that_there_are(name, given):
    values = flags.FlagValues()
    define_flags(_SETTINGS[name], flag_values=values)
    words = [word for word in shlex.split(given) if word != "--help"]
    # `--name=` stands for any value.
    values(["rlm_tf", *(f"{word}1" if word.endswith("=") else word for word in words)])
    config_from_flags(_SETTINGS[name](), values)

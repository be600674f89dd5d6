"""Tests of the binary that exports, and of the quiet start of all binaries."""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
import sys
import zipfile

import pytest
import tensorflow as tf

from experiments.export import exporting as export
from experiments.export.config import Config
from rlm_tf.command_line import run_lock
from rlm_tf.data import Vocabulary
from rlm_tf.models import RecurrentLanguageModel
from tests.experiments.binaries import ROOT, run_binary


def run(*arguments, env=None):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=env,
        check=False,
    )


@pytest.fixture
def trained(tmp_path):
    vocabulary = Vocabulary.build("a rose is a rose .\n", rule="words", unknown=True)
    model = RecurrentLanguageModel(len(vocabulary), 4, 1)
    model.save(tmp_path / "model.keras")
    vocabulary.save(tmp_path / "vocabulary.txt")
    return Config(model=str(tmp_path / "model.keras"), output_dir=str(tmp_path / "out"))


@pytest.mark.landing
def test_exports_a_file_and_shows_it(trained, capsys):
    config = dataclasses.replace(trained, prompt="a rose", seeds=(3,), max_tokens=4)
    path = export.main(config)
    shown = capsys.readouterr().out
    loaded = tf.saved_model.load(str(path))
    text = loaded.generate(["a rose"], 4, 0.8, 0, 0.95, 0.0, 1.0, 0.0, 3)
    assert text["text"].numpy()[0].decode().replace("\n", "\n    ") in shown
    for expected in ("next_token", "texts: string[?]", "saved_model_cli", "curl"):
        assert expected in shown
    assert f"source={path},target=/models/out/1 \\" in shown
    # A folder of versions is served as a whole, under its own name.
    roses = path.with_name("roses")
    roses.mkdir()
    version = str(path.rename(roses / "7"))
    export.main(dataclasses.replace(config, output_dir=version, resume=True))
    shown = capsys.readouterr().out
    assert "MODEL_NAME=roses" in shown and "/v1/models/roses:predict" in shown
    assert f"source={roses},target=/models/roses \\" in shown


@pytest.mark.landing
def test_existing_export(trained, capsys):
    path = export.main(trained)
    written = (path / "saved_model.pb").stat().st_mtime_ns
    with pytest.raises(
        FileExistsError, match=r"already holds.*, or add --overwrite\.$"
    ):
        export.main(trained)
    export.main(dataclasses.replace(trained, resume=True, model="gone"))
    assert (path / "saved_model.pb").stat().st_mtime_ns == written
    export.main(dataclasses.replace(trained, overwrite=True))
    assert (path / "saved_model.pb").stat().st_mtime_ns > written


def damaged(trained, name, content):
    """The configuration with a damaged copy of one member of the .keras file."""
    path = pathlib.Path(trained.model)
    copy = path.with_name("damaged.keras")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for member in old.namelist():
            data = old.read(member)
            new.writestr(member, content(data) if member == name else data)
    return dataclasses.replace(trained, model=str(copy))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", lambda data: b"[1]"),
        ("config.json", lambda data: b"null"),
        ("config.json", lambda data: data[:50]),
        ("config.json", lambda data: data.replace(b"RecurrentLang", b"UnknownLang")),
        ("model.weights.h5", lambda data: data[:100]),
    ],
)
def test_damaged_models_are_named(trained, name, content):
    message = r"^--model: \S+damaged.keras could not be read as a model \(.*anew\.$"
    with pytest.raises(ValueError, match=message):
        export.main(damaged(trained, name, content))


def test_files_of_other_kinds_are_named(trained, tmp_path):
    other = tmp_path / "other"
    for content in (b"", b"garbage", b'{"a": 1}', b"\xff\xfe"):
        other.write_bytes(content)
        with pytest.raises(ValueError, match=r"^--vocabulary: \S+other, line 1: not"):
            export.main(dataclasses.replace(trained, vocabulary=str(other)))
        other.with_suffix(".keras").write_bytes(content)
        with pytest.raises(ValueError, match="no zip file, or cut off"):
            export._read_model(other.with_suffix(".keras"))
    for flag in ("model", "vocabulary"):
        with pytest.raises(IsADirectoryError, match=f"--{flag}: .* is a folder"):
            export.main(dataclasses.replace(trained, **{flag: str(tmp_path)}))
    # A SavedModel that is kept is read, too.
    kept = dataclasses.replace(trained, output_dir=str(other.parent), resume=True)
    for content in (b"", b"garbage"):
        (tmp_path / "saved_model.pb").write_bytes(content)
        with pytest.raises(ValueError, match=r"could not be read as a SavedModel \("):
            export.main(kept)
    tf.saved_model.save(tf.Module(), kept.output_dir)
    with pytest.raises(ValueError, match="no signature score, next_token, generate;"):
        export.main(kept)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"[1]", b"null", b"\xff", b"[" * 99_999]
)
def test_damaged_settings_are_named(tmp_path, content):
    config = Config(training_dir=str(tmp_path), output_dir=str(tmp_path / "out"))
    folder = tmp_path / config.preset
    folder.mkdir()
    (folder / "config.json").write_bytes(content)
    message = r"config.json is damaged \(.*\); remove .*another --training_dir\.$"
    with pytest.raises(ValueError, match=message):
        export.main(config)


def test_another_process_may_be_training_there(tmp_path):
    config = Config(training_dir=str(tmp_path), output_dir=str(tmp_path / "out"))
    with (
        run_lock.held(tmp_path / config.preset),
        pytest.raises(BlockingIOError, match=r"written by .* another --training_dir"),
    ):
        export.main(config)


def test_places_are_checked_before_anything_is_trained(trained, tmp_path):
    written = pathlib.Path(trained.output_dir)
    written.mkdir(parents=True)
    (written / "saved_model.pb").touch()
    folder = tmp_path / "training"
    demonstration = dataclasses.replace(trained, model="", training_dir=str(folder))
    with pytest.raises(FileExistsError, match="already holds"):
        export.main(demonstration)
    assert not folder.exists()
    (folder / "smoke").mkdir(parents=True)
    (folder / "smoke" / "config.json").write_text('{"epochs": 77}')
    with pytest.raises(ValueError, match=r"epochs was 77 .* another --training_dir\.$"):
        export.main(dataclasses.replace(demonstration, overwrite=True))


@pytest.mark.landing
def test_prompt_that_no_token_stands_for(trained, tmp_path):
    vocabulary = Vocabulary.build("a rose\n", rule="words", unknown=False)
    RecurrentLanguageModel(len(vocabulary), 4, 1).save(tmp_path / "model.keras")
    vocabulary.save(tmp_path / "vocabulary.txt")
    with pytest.raises(ValueError, match=r"--prompt 'a zebra': .*zebra"):
        export.main(dataclasses.replace(trained, prompt="a zebra"))
    again = dataclasses.replace(trained, resume=True, prompt="a" * 1_000_001)
    with pytest.raises(ValueError, match=r"^--prompt \S{,90}: .*at most 1000000 bytes"):
        export.main(again)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "gone.keras"}, FileNotFoundError, "--model: .*gone.keras"),
        ({"vocabulary": "gone.txt"}, FileNotFoundError, "--vocabulary: .*gone.txt"),
        ({"preset": "huge"}, ValueError, "smoke, small, paper; found 'huge'"),
        ({"temperature": -1.0}, ValueError, "--temperature must be at least 0"),
        ({"top_k": -1}, ValueError, "--top_k must be at least 0"),
        ({"top_p": 1.5}, ValueError, r"--top_p must be in \[0, 1\], found 1.5"),
        ({"max_tokens": -2}, ValueError, r"--max_tokens must be in \[0, 10000\]"),
        ({"max_tokens": 20000}, ValueError, r"in \[0, 10000\], found 20000"),
        (
            {"calibration": 3e38},
            ValueError,
            r"--calibration must be in \[-1e\+06, 1e\+06",
        ),
        ({"calibration": float("nan")}, ValueError, "--calibration must be in"),
        ({"output_dir": "."}, FileExistsError, "folder that this process runs in"),
        ({"output_dir": "[a]"}, ValueError, "takes '\\[' in a path for a pattern"),
    ],
)
def test_mistakes(trained, changes, error, message):
    with pytest.raises(error, match=message):
        export.main(dataclasses.replace(trained, **changes))


@pytest.mark.landing
def test_smoke_preset_in_a_process_of_its_own(tmp_path):
    command = ("-m", "experiments.export", "--preset=smoke", "--seeds=5,6")
    result = run(
        *command,
        f"--output_dir={tmp_path / 'demo'}",
        f"--training_dir={tmp_path / 'training'}",
    )
    assert result.returncode == 0, result.stderr
    assert "InitializeLog" not in result.stderr, result.stderr
    assert "seed 5: " in result.stdout and "seed 6: " in result.stdout
    assert (tmp_path / "demo" / "saved_model.pb").is_file()
    assert (tmp_path / "training" / "smoke" / "model.keras").is_file()


def test_mistake_is_one_line():
    result = run_binary("export", "--preset=huge")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: --preset must be one of")


def test_help_names_every_option():
    result = run_binary("export", "--helpshort")
    for field in dataclasses.fields(Config):
        assert f"--{field.name}" in result.stdout.replace("--[no]", "--")
    assert "python -m experiments.export" in result.stdout


# === Quiet start ===


@pytest.mark.landing
def test_tensorflow_starts_in_silence():
    result = run(
        "-c",
        "from rlm_tf.command_line.quiet import silence_tensorflow as s; s();"
        "import sys, tensorflow as tf; tf.constant(1) + 1; sys.stderr.write('heard')",
    )
    assert (result.returncode, result.stderr) == (0, "heard")


BINARIES = sorted(
    path.parent.name for path in (ROOT / "experiments").glob("*/__main__.py")
)


@pytest.mark.parametrize("name", BINARIES)
def test_flags_are_read_before_anything_slow_is_imported(name):
    """So `--help` and a mistake are answered at once; `start` silences TensorFlow."""
    program = (
        "import runpy, sys\n"
        "sys.argv = ['x', '--help']\n"
        "try:\n"
        f"    runpy.run_module('experiments.{name}', run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "slow = {'tensorflow', 'keras', 'numpy', 'matplotlib'} & {*sys.modules}\n"
        "assert not slow, slow\n"
    )
    done = run("-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"python -m experiments.{name}\n")


def test_a_failing_import_is_heard(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import os; os.write(2, b'native chatter\\n'); raise ImportError('broken')"
    )
    result = run(
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from rlm_tf.command_line.quiet import silence_tensorflow as s; s()",
    )
    assert result.returncode == 1
    assert "native chatter" in result.stderr and "broken" in result.stderr

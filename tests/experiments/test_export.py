"""Tests of the binary that exports, and of the quiet start of all binaries."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

from experiments import export
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
    return export.Config(
        model=str(tmp_path / "model.keras"), output_dir=str(tmp_path / "out")
    )


def test_exports_a_file_and_shows_it(trained, capsys):
    config = dataclasses.replace(trained, prompt="a rose", seeds=(3,), max_tokens=4)
    path = export.main(config)
    shown = capsys.readouterr().out
    loaded = tf.saved_model.load(str(path))
    text = loaded.generate(["a rose"], 4, 0.8, 0, 0.95, 0.0, 1.0, 0.0, 3)
    assert text["text"].numpy()[0].decode().replace("\n", "\n    ") in shown
    for expected in ("next_token", "texts: string[?]", "saved_model_cli", "curl"):
        assert expected in shown


def test_existing_export(trained, capsys):
    path = export.main(trained)
    written = (path / "saved_model.pb").stat().st_mtime_ns
    with pytest.raises(FileExistsError, match="already holds"):
        export.main(trained)
    export.main(dataclasses.replace(trained, resume=True, model="gone"))
    assert (path / "saved_model.pb").stat().st_mtime_ns == written
    export.main(dataclasses.replace(trained, overwrite=True))
    assert (path / "saved_model.pb").stat().st_mtime_ns > written


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


def test_prompt_that_no_token_stands_for(trained, tmp_path):
    vocabulary = Vocabulary.build("a rose\n", rule="words", unknown=False)
    RecurrentLanguageModel(len(vocabulary), 4, 1).save(tmp_path / "model.keras")
    vocabulary.save(tmp_path / "vocabulary.txt")
    with pytest.raises(ValueError, match=r"--prompt 'a zebra': .*zebra"):
        export.main(dataclasses.replace(trained, prompt="a zebra"))


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
    ],
)
def test_mistakes(trained, changes, error, message):
    with pytest.raises(error, match=message):
        export.main(dataclasses.replace(trained, **changes))


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
    for field in dataclasses.fields(export.Config):
        assert f"--{field.name}" in result.stdout.replace("--[no]", "--")
    assert "python -m experiments.export" in result.stdout


# === Quiet start ===


def test_tensorflow_starts_in_silence():
    result = run(
        "-c",
        "from experiments.quiet import silence_tensorflow as s; s();"
        "import sys, tensorflow as tf; tf.constant(1) + 1; sys.stderr.write('heard')",
    )
    assert (result.returncode, result.stderr) == (0, "heard")


# `experiments.flags.run` does it for the others.
BINARIES = sorted(
    path
    for path in (ROOT / "experiments").glob("*.py")
    if '__name__ == "__main__"' in path.read_text("utf-8")
    and path.stem not in ("benchmark", "export")
)


@pytest.mark.parametrize("path", BINARIES, ids=lambda path: path.stem)
def test_every_binary_silences_tensorflow_before_it_imports_it(path):
    imported = set()
    for statement in ast.parse(path.read_text("utf-8")).body:
        if ast.unparse(statement) == "silence_tensorflow()":
            break
        if isinstance(statement, ast.Import):
            imported |= {alias.name for alias in statement.names}
        if isinstance(statement, ast.ImportFrom):
            imported |= {f"{statement.module}.{a.name}" for a in statement.names}
    else:
        raise AssertionError("silence_tensorflow() is not called")
    quick = ["experiments.flags", "experiments.quiet", "absl", *sys.stdlib_module_names]
    prefixes = tuple(f"{name}." for name in quick)
    assert all(f"{name}.".startswith(prefixes) for name in imported), imported


def test_a_failing_import_is_heard(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import os; os.write(2, b'native chatter\\n'); raise ImportError('broken')"
    )
    result = run(
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from experiments.quiet import silence_tensorflow as s; s()",
    )
    assert result.returncode == 1
    assert "native chatter" in result.stderr and "broken" in result.stderr

"""`rlm_tf train` from a text to a served mixture, and what is done with its folder."""

from __future__ import annotations

import dataclasses
import io
import json
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import load_model
from rlm_tf.command_line import run_lock
from rlm_tf.commands import compare, settings, using
from rlm_tf.commands.distillation import running as distilling
from rlm_tf.commands.distillation.settings import (
    DistilSettings,
    check_distil_settings,
)
from rlm_tf.commands.model_folder import load_folder
from rlm_tf.commands.settings import TrainSettings
from rlm_tf.commands.training import fitting, reading, running
from rlm_tf.data.text.python_docs import python_docs
from rlm_tf.evaluation import interpolate, restricted_target_log_probs, target_log_probs
from rlm_tf.serving.arguments import MAX_TEXT_BYTES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("text") / "docs.txt"
    path.write_text(python_docs()["train"][:40_000])
    return path


@pytest.fixture(scope="module")
def small(text, tmp_path_factory) -> TrainSettings:
    return TrainSettings(
        text=str(text),
        output_dir=str(tmp_path_factory.mktemp("out") / "docs"),
        epochs=2,
        max_size=300,
        width=16,
        num_layers=1,
        dropouts=(0.1, 0.0, 0.0, 0.1),
    )


@pytest.fixture(scope="module")
def trained(small) -> pathlib.Path:
    running.run(small)
    return pathlib.Path(str(small.output_dir))


def test_everything_is_written(trained):
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "checkpoints",
        "metrics.jsonl",
        "model.keras",
        "n_gram.kn",
        "plan.json",
        "report.html",
        "report.md",
        "report_files",
        "results.json",
        "saved_model",
        "settings.json",
        "vocabulary.txt",
    }
    report = (trained / "report.md").read_text()
    for heading in ("Results", "Choices", "Words that cost most", "More text"):
        assert f"## {heading}" in report
    for heading in ("Training", "Calibration", "Samples", "Time and size"):
        assert f"## {heading}" in report


def test_results_are_those_of_the_files(small, trained):
    found = load_folder(str(trained), "test")
    scores = found.results["scores"]
    test = found.vocabulary.encode(reading.read_texts(small).splits["test"])
    eos = found.vocabulary.eos_id
    log_p = restricted_target_log_probs(found.n_gram, test, prefix=eos)
    log_q, tempered = (
        target_log_probs(found.model, test, 1, 35, prefix=eos, temperature=heat)
        for heat in (1.0, found.temperature)
    )
    assert found.mu is not None
    mixed = interpolate(tempered, log_p, found.mu)
    for name, log_probs in (("n-gram", log_p), ("model", log_q), ("mixture", mixed)):
        nats = scores[name]["test"]["nats_per_token"]
        assert nats == pytest.approx(-log_probs.mean(), rel=1e-5)
        assert scores[name]["test"]["num_tokens"] == len(test)
    valid = {name: splits["valid"]["perplexity"] for name, splits in scores.items()}
    assert valid["mixture"] <= min(valid["n-gram"], valid["model"])
    assert "dynamic evaluation" in valid


def test_a_model_behind_its_n_gram_is_told(trained):
    found = json.loads((trained / "results.json").read_text())
    scores = found["scores"]
    perplexity = {name: scores[name]["valid"]["perplexity"] for name in scores}
    assert perplexity["model"] > perplexity["n-gram"]
    assert any("not better than its n-gram" in line for line in found["warnings"])
    # The n-gram is to be served where the mixture, which is served, is not better.
    behind = [
        split
        for split in ("valid", "test")
        if scores["mixture"][split]["perplexity"]
        >= scores["n-gram"][split]["perplexity"]
    ]
    told = any("export --n_gram" in line for line in found["warnings"])
    assert told == bool(behind)


def test_the_same_command_finds_it_done_and_another_is_refused(trained, small, capsys):
    before = (trained / "results.json").stat().st_mtime_ns
    running.run(small)
    assert "done before" in capsys.readouterr().out
    assert (trained / "results.json").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match=r"epochs was 2 and is 3.*--overwrite"):
        running.run(dataclasses.replace(small, epochs=3))
    with run_lock.held(trained), pytest.raises(BlockingIOError, match="being written"):
        running.run(small)


def test_what_a_kill_left_of_the_settings_is_no_obstacle(small, tmp_path):
    (tmp_path / ".settings.json.123").write_text("{")
    given = dataclasses.replace(small, output_dir=str(tmp_path))
    texts = reading.read_texts(given)
    assert not running.Run(given, tmp_path).is_done(texts)
    assert (tmp_path / "settings.json").exists()


def test_a_folder_of_something_else_is_left_alone(small, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="has files of something else"):
        running.run(dataclasses.replace(small, output_dir=str(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_overwrite_leaves_what_is_not_its_own(small, tmp_path):
    """A folder of something else is refused before anything is removed from it."""
    given = dataclasses.replace(small, output_dir=str(tmp_path), overwrite=True)
    texts = reading.read_texts(given)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "model.keras").write_text("another model")
    with pytest.raises(ValueError, match="has files of something else"):
        running.Run(given, tmp_path).is_done(texts)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoints", "model.keras"}
    # In a folder of its own it removes what it wrote and nothing else.
    (tmp_path / "settings.json").write_text('{"epochs": 9}')
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".saved_model.123").mkdir()
    assert not running.Run(given, tmp_path).is_done(texts)
    assert not (tmp_path / "model.keras").exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert json.loads((tmp_path / "settings.json").read_text())["epochs"] == 2


@pytest.mark.landing
def test_the_served_mixture_needs_a_bare_process(trained):
    program = """
import sys
import tensorflow as tf
import tensorflow_text
served = tf.saved_model.load(sys.argv[1])
answer = served.signatures["score"](texts=tf.constant(["the value of a name"]))
assert not {"rlm_tf", "keras_hub", "sentencepiece"} & set(sys.modules)
print(answer["total"].numpy()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(trained / "saved_model")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = load_folder(str(trained), "test")
    ids, eos = found.vocabulary.encode("the value of a name"), found.vocabulary.eos_id
    ids = ids[ids != eos]
    log_p = restricted_target_log_probs(found.n_gram, ids, prefix=eos)
    log_q = target_log_probs(
        found.model, ids, 1, 35, prefix=eos, temperature=found.temperature
    )
    mixed = interpolate(log_q, log_p, found.mu)
    assert float(done.stdout) == pytest.approx(mixed.sum(), rel=1e-4)


def test_evaluate_gives_the_numbers_of_training(small, trained, tmp_path, capsys):
    text = reading.read_texts(small).splits["test"]
    (tmp_path / "test.txt").write_bytes(text)
    using.evaluate(
        settings.EvaluateSettings(model=str(trained), text=str(tmp_path / "test.txt"))
    )
    # The first row has titles.
    lines = capsys.readouterr().out.split("| ---", 1)[1].splitlines()
    scores = json.loads((trained / "results.json").read_text())["scores"]
    for name in ("n-gram", "model", "mixture"):
        row = next(line for line in lines if line.startswith(f"| {name} "))
        assert f"{scores[name]['test']['perplexity']:.2f}" in row
        assert f"{scores[name]['test']['bits_per_byte']:.3f}" in row


def test_compare_shows_models_side_by_side(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        compare,
        "config_from_flags",
        lambda _: settings.CompareSettings((str(trained), str(trained))),
    )
    compare.main()
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "| mixture " in line]) == 2
    bits = json.loads((trained / "results.json").read_text())["scores"]["mixture"]
    assert f"{bits['test']['bits_per_byte']:.3f}" in lines[-2]


def test_lines_are_scored_each_on_its_own(trained, monkeypatch, capsys):
    lines = ["The object", "", "\u8fd9\u662f", "The object"]

    class Stdin:
        buffer = io.BytesIO("\n".join(lines).encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    using.score(settings.ScoreSettings(model=str(trained), batch_size=3))
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["nats", "tokens", "bits_per_byte", "text"]
    assert [row[3] for row in rows[1:]] == lines
    assert rows[1] == rows[4] and float(rows[1][0]) < 0
    assert rows[2][:3] == ["0.0000", "0", "0.0000"] or float(rows[2][0]) == 0


def test_the_line_that_cannot_be_scored_is_named(trained, monkeypatch, capsys):
    class Stdin:
        buffer = io.BytesIO(b"The object\n" + b"a" * (MAX_TEXT_BYTES + 1) + b"\nThe\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    with pytest.raises(ValueError, match=r"^line 2: .*at most"):
        using.score(settings.ScoreSettings(model=str(trained), batch_size=3))
    assert capsys.readouterr().out.splitlines()[-1].endswith("\tThe object")


def test_generate_goes_on_from_the_prompt(trained, capsys):
    options = settings.GenerateSettings(
        model=str(trained), prompt="The object", max_tokens=5, samples=2
    )
    using.generate(options)
    first = capsys.readouterr().out
    assert first.count("The object") == 2 and "--- seed 2" in first
    using.generate(options)
    assert capsys.readouterr().out == first
    with pytest.raises(ValueError, match="top_p"):
        using.generate(dataclasses.replace(options, top_p=2.0))


def test_a_prompt_of_unknown_words_stays_as_it_is():
    assert using._continued("a cat", "a cat sat", " sat") == "a cat sat"
    assert using._continued("a zebra", "a <unk> sat", "sat") == "a zebra sat"
    assert using._continued("a zebra", "a <unk>, or", ", or") == "a zebra, or"


@pytest.mark.landing
def test_the_n_gram_can_be_served_alone(trained, tmp_path, capsys):
    options = settings.ExportSettings(
        model=str(trained), output_dir=str(tmp_path / "x"), n_gram=True
    )
    using.export(options)
    assert "the n-gram alone" in capsys.readouterr().out
    loaded = tf.saved_model.load(str(tmp_path / "x"))
    found = load_folder(str(trained), "test")
    ids = found.vocabulary.encode("The object\u9f98")
    expected = restricted_target_log_probs(
        found.n_gram, ids, prefix=found.vocabulary.eos_id
    )
    answer = loaded.score(tf.constant(["The object\u9f98"]))
    np.testing.assert_allclose(answer["log_probs"][0], expected, atol=1e-4)


@pytest.mark.landing
def test_export_writes_the_model_alone_on_demand(trained, tmp_path, capsys):
    path = tmp_path / "small"
    options = settings.ExportSettings(
        model=str(trained), output_dir=str(path), mixture=False
    )
    using.export(options)
    assert "the model alone" in capsys.readouterr().out
    with pytest.raises(FileExistsError):
        using.export(options)
    served = (trained / "saved_model" / "variables").glob("*.data*")
    alone = (path / "variables").glob("*.data*")
    sizes = [sum(file.stat().st_size for file in files) for files in (alone, served)]
    assert sizes[0] < sizes[1] / 2


@pytest.mark.landing
def test_minutes_and_text_that_is_only_counted(small, trained, tmp_path, capsys):
    more = tmp_path / "more.txt"
    more.write_text(python_docs()["valid"][:40_000])
    folder = tmp_path / "counted"
    given = dataclasses.replace(
        small,
        output_dir=str(folder),
        count_text=str(more),
        mixture=False,
        epochs=None,
        minutes=0.5,
        width=None,
        dropouts=None,
        dynamic=False,
    )
    running.run(given)
    shown = capsys.readouterr().out
    assert "min left" in shown and "training ended" in shown
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["imm"] and plan["seconds"] > 0
    assert (plan["restricted_order"], plan["coefficient"]) == (5, 0.5)
    found = json.loads((folder / "results.json").read_text())
    assert found["mixture"]["mu"] is None
    assert found["training"]["seconds"] < 60
    # What is counted too makes the n-gram better than that of the text alone.
    own = json.loads((trained / "results.json").read_text())
    perplexity = [
        results["scores"]["n-gram"]["test"]["perplexity"] for results in (found, own)
    ]
    assert perplexity[0] < perplexity[1]
    assert load_folder(str(folder), "test").mixture is None
    assert "bits per byte of the test text" in (folder / "report.md").read_text()


@pytest.mark.landing
def test_several_models_are_trained_and_their_mean_is_served(
    small, trained, tmp_path, capsys, monkeypatch
):
    given = dataclasses.replace(small, output_dir=str(tmp_path / "mean"), ensemble=2)
    folder, fit = tmp_path / "mean", fitting.fit

    def killed(plan, *others, **options):
        if plan.seed == 2:
            raise KeyboardInterrupt
        return fit(plan, *others, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(fitting, "fit", killed)
        running.run(given)
    assert not (folder / "results.json").exists()
    running.run(given)
    shown = capsys.readouterr().out
    assert "ensemble: 2 models, of seeds 1 to 2" in shown
    assert "trained before: 2 epochs" in shown
    found = load_folder(str(folder), "test")
    scores = {name: row["test"] for name, row in found.results["scores"].items()}
    assert [each["seed"] for each in found.results["training"]["models"]] == [1, 2]
    # The first is what the same command without --ensemble trains.
    alone = json.loads((trained / "results.json").read_text())["scores"]
    for name in ("model", "mixture"):
        first = scores["first model" + (", mixture" if name == "mixture" else "")]
        assert first == pytest.approx(alone[name]["test"], rel=1e-6)
    test = found.vocabulary.encode(reading.read_texts(given).splits["test"])
    eos = found.vocabulary.eos_id
    each = [
        target_log_probs(model, test, 1, 35, prefix=eos) for model in found.model.models
    ]
    nats = -np.mean(np.logaddexp(*each) - np.log(2))
    assert scores["model"]["nats_per_token"] == pytest.approx(nats, rel=1e-5)
    assert nats < np.mean([-one.mean() for one in each])
    using.generate(
        settings.GenerateSettings(
            model=str(folder), prompt="The object", max_tokens=5, temperature=0.0
        )
    )
    assert capsys.readouterr().out.startswith("The object")
    assert "2 models, on average 2 epochs" in (folder / "report.md").read_text()


@pytest.mark.landing
def test_a_transformer_is_trained_with_imm_and_served(small, tmp_path, capsys):
    given = dataclasses.replace(
        small,
        output_dir=str(tmp_path / "transformer"),
        architecture="transformer",
        dropouts=(0.0, 0.0),
        imm=True,
        dynamic=False,
    )
    running.run(given)
    assert "1 x 16 transformer" in capsys.readouterr().out
    found = json.loads((tmp_path / "transformer" / "results.json").read_text())
    # Of 300 pieces.
    assert found["scores"]["model"]["test"]["perplexity"] < 250
    assert found["plan"]["imm"]
    using.generate(
        settings.GenerateSettings(
            model=str(given.output_dir), prompt="The object", max_tokens=5
        )
    )
    assert capsys.readouterr().out.startswith("The object")


@pytest.mark.landing
def test_a_killed_run_goes_on_to_the_same_numbers(small, trained, tmp_path):
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "rlm_tf.commands", "train"]
    for field in dataclasses.fields(small):
        value = getattr(small, field.name)
        if field.name == "output_dir" or value == field.default:
            continue
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
        command.append(f"--{field.name}={shown}")
    command += [f"--output_dir={folder}", "--nodynamic"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 1 "):
            # The checkpoint of the first epoch comes at its end.
            while not list(folder.glob("checkpoints/checkpoint-*")):
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Resuming from" in done.stderr and "epoch 2" in done.stdout
    found, whole = (
        json.loads((path / "results.json").read_text())["scores"]["mixture"]
        for path in (folder, trained)
    )
    assert found == whole


@pytest.mark.landing
def test_it_teaches_a_model_of_half_its_width(trained, small, tmp_path, capsys):
    wanted = DistilSettings(
        teacher=(str(trained),),
        student="0.5",
        export=str(tmp_path / "served"),
        output_dir=str(tmp_path / "run"),
        epochs=1,
    )
    check_distil_settings(wanted)
    distilling.run(wanted)
    shown = capsys.readouterr().out
    assert "perplexity" in shown and "| student alone |" in shown
    student = load_model(tmp_path / "run" / "student.keras")
    assert student.cell.units == 8
    vocabulary = (tmp_path / "run" / "vocabulary.txt").read_bytes()
    assert vocabulary == (trained / "vocabulary.txt").read_bytes()
    served = tf.saved_model.load(str(tmp_path / "served"))
    answer = served.signatures["score"](texts=tf.constant(["The class is called."]))
    assert np.isfinite(answer["total"]).all()

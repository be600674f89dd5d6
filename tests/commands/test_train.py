"""`rlm_tf train` from a text to a served mixture, and what is done with its folder."""

from __future__ import annotations

import dataclasses
import io
import json
import sys

import pytest

from rlm_tf.command_line import run_lock
from rlm_tf.commands import compare, settings, using
from rlm_tf.commands.model_folder import load_folder
from rlm_tf.commands.training import reading, running
from rlm_tf.evaluation import interpolate, restricted_target_log_probs, target_log_probs
from rlm_tf.serving.arguments import MAX_TEXT_BYTES

pytestmark = pytest.mark.slow


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

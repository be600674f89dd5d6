"""`rlm_tf seed_classify`: what is written, labels, kills, mistakes."""

from __future__ import annotations

import csv
import dataclasses
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import load_model
from rlm_tf.commands.seeds import reading, running, settings
from rlm_tf.labelling import SeedRule

_WORDS = {
    "sea": ["ship", "wave", "sail", "harbour", "captain"],
    "wood": ["tree", "leaf", "forest", "root", "branch"],
}
_SEEDS = {"sea": ["ship", "harbour*"], "wood": ["tree", "forest", "sequoia"]}


def _texts(number=120):
    rng = np.random.default_rng(0)
    kinds = [*_WORDS]
    found = []
    for i in range(number):
        words = [*rng.choice(_WORDS[kinds[i % 2]], 3), *rng.choice(["the", "an"], 3)]
        found.append(" ".join(map(str, words)))
    return [*found, "\u4e2d\u6587, a 'quote'\nand a line", "!?"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table of documents, and seed words."""
    folder = tmp_path_factory.mktemp("corpus")
    with open(folder / "corpus.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["key", "body"])
        table.writerows((f"d{i}", text) for i, text in enumerate(_texts()))
    (folder / "seeds.json").write_text(json.dumps(_SEEDS))
    return folder


def _settings(files, **options):
    return settings.SeedClassifySettings(
        **{
            "texts": str(files / "corpus.csv"),
            "seed_words": str(files / "seeds.json"),
            "output_dir": str(files / "out"),
            "text_column": "body",
            "id_column": "key",
            "epochs": 12,
            "batch_size": 16,
            "learning_rate": 0.1,
            "iterations": 2,
            "to_label": 10,
            **options,
        }
    )


@pytest.fixture(scope="module")
def done(files):
    given = _settings(files)
    settings.check_seed_classify_settings(given)
    running.run(given)
    return files / "out"


def _rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [*csv.reader(file)]


def test_everything_is_written(done):
    assert {path.name for path in done.iterdir()} == {
        *("model.keras", "predictions.csv", "report.html", "report.json", "report.md"),
        *("saved_model", "settings.json", "to_label.csv", "trainings", "report_files"),
    }
    header, *rows = _rows(done / "predictions.csv")
    assert header == ["id", "label", "probability", "seed_label"]
    assert [row[0] for row in rows] == [f"d{i}" for i in range(122)]
    matches = SeedRule(_SEEDS).match(_texts())
    names = ["sea", "wood", ""]
    assert [row[3] for row in rows] == [names[label] for label in matches.labels]
    # Without a word nothing is said.
    assert rows[-1][1] == "" and {row[1] for row in rows[:-1]} == {"sea", "wood"}
    right = np.mean([row[1] == names[i % 2] for i, row in enumerate(rows[:120])])
    assert right > 0.95
    model = load_model(done / "model.keras", compile=False)
    probs = tf.nn.softmax(model(model.reader.rows(_texts()).tokens)).numpy()
    shown = [float(row[2]) for row in rows]
    np.testing.assert_allclose(shown, probs.max(axis=1), atol=1e-4)
    header, *rows = _rows(done / "to_label.csv")
    assert header == ["id", "text"] and len({row[0] for row in rows}) == 10
    assert all(text == _texts()[int(own[1:])] for own, text in rows)
    served = tf.saved_model.load(str(done / "saved_model")).signatures
    labels = served["classify"](texts=tf.constant(["wave", "a leaf"]))["labels"]
    assert labels.numpy().tolist() == [b"sea", b"wood"]
    labels = served["match"](texts=tf.constant(["harbours", "leaf"]))["labels"]
    assert labels.numpy().tolist() == [b"sea", b""]


def test_the_report(done):
    found = json.loads((done / "report.json").read_text())
    assert found["documents"] == 122
    matches = SeedRule(_SEEDS).match(_texts())
    assert found["labelled"] == (matches.labels >= 0).sum()
    assert sum(row["by_seeds"] for row in found["classes"]) == found["labelled"]
    assert "accuracy" not in found and len(found["changes"]) == 2
    (warning,) = found["warnings"]
    assert warning == "no document has the seeds sequoia"
    page = (done / "report.md").read_text()
    for heading in ("Classes", "Seeds", "Where seeds and the classifier disagree"):
        assert f"## {heading}" in page
    assert "sequoia" in (done / "report.html").read_text()


@pytest.mark.slow
def test_labels_tell_the_accuracy_and_change_nothing_else(files, done, capsys):
    before = (done / "predictions.csv").read_bytes()
    chosen = _rows(done / "to_label.csv")[1:]
    names = ["sea", "wood"]
    lines = ["id,label", *(f"{own},{names[int(own[1:]) % 2]}" for own, _ in chosen)]
    (files / "labels.csv").write_text("\n".join(lines))
    running.run(_settings(files, labels=str(files / "labels.csv")))
    found = json.loads((done / "report.json").read_text())["accuracy"]
    assert found["labels"] == 10 and found["low"] < found["value"] <= found["high"]
    assert "accuracy, from 10 labels" in capsys.readouterr().out
    assert (done / "predictions.csv").read_bytes() == before
    # Of other documents they are a simple sample.
    (files / "labels.csv").write_text("id,label\nd0,sea\nd1,wood\nd2,wood\n")
    running.run(_settings(files, labels=str(files / "labels.csv")))
    found = json.loads((done / "report.json").read_text())["accuracy"]
    assert found["value"] == pytest.approx(2 / 3)


@pytest.mark.landing
def test_a_killed_run_ends_with_the_same_predictions(files, done, tmp_path):
    flags = {
        name: value
        for name, value in dataclasses.asdict(_settings(files)).items()
        if value not in (None, True, False)
    } | {"output_dir": str(tmp_path / "killed")}
    command = [sys.executable, "-m", "rlm_tf.commands", "seed_classify"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    first = tmp_path / "killed" / "trainings" / "training1" / "said.npz"
    end = time.monotonic() + 120
    while not first.exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert first.exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in ("predictions.csv", "to_label.csv"):
        found = (tmp_path / "killed" / name).read_bytes()
        assert found == (done / name).read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": None}, "needs --texts"),
        ({"deletion": "all"}, "--deletion must be one of random, seeds, none"),
        ({"deletion_ratio": 1.0}, r"--deletion_ratio must lie in \[0, 1\)"),
        ({"epochs": 0}, "--epochs must be at least 1"),
        ({"learning_rate": 0.0}, "--learning_rate must be positive"),
    ],
)
def test_settings(files, changes, message):
    with pytest.raises(ValueError, match=message):
        settings.check_seed_classify_settings(_settings(files, **changes))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "expected lists of words by class, found list"),
        ("{", r"--seed_words=.*json: Expecting"),
        ('{"sea": ["ship"]}', "two classes at least, found 'sea'"),
        ('{"sea": ["ship"], "wood": []}', "the class 'wood' has no seed"),
        ('{"sea": ["ship"], "air": ["plane"]}', "no document is labelled air"),
    ],
)
def test_seed_words_that_cannot_be(files, tmp_path, content, message):
    (tmp_path / "seeds.json").write_text(content)
    given = _settings(
        files,
        seed_words=str(tmp_path / "seeds.json"),
        output_dir=str(tmp_path / "out"),
    )
    with pytest.raises(ValueError, match=message):
        running.run(given)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,label\nx,sea\n", "no document has the id 'x'"),
        (
            "id,label\nd1,air\n",
            "unknown label 'air' of 'd1'; expected one of sea,",
        ),
        ("id,label\nd1,sea\nd1,sea\n", "the id 'd1' is there twice"),
        ("id,lable\nd1,sea\n", r"no column 'label' \(did you mean 'lable'\?\)"),
    ],
)
def test_labels_that_cannot_be(files, tmp_path, content, message):
    (tmp_path / "labels.csv").write_text(content)
    corpus = reading.read_corpus(_settings(files))
    with pytest.raises(ValueError, match=message):
        reading.read_labels(str(tmp_path / "labels.csv"), corpus, ("sea", "wood"))

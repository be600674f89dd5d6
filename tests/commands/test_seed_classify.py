"""`rlm_tf seed_classify`: what is written, labels, kills, mistakes."""

from __future__ import annotations

import csv
import dataclasses
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import load_model
from rlm_tf.commands.seeds import (
    estimating,
    looking,
    reading,
    running,
    settings,
    training,
)
from rlm_tf.labelling import SeedRule
from tests.commands.seed_files import (
    SEEDS,
    WORDS,
    documents,
    seed_settings,
    write_files,
)

# Of `make seeds-demo`.
_DEMO_SEEDS = "experiments/seed_classify/python_docs_seeds.json"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("corpus"))


def _run_command(name, *flags):
    command = [sys.executable, "-m", "rlm_tf.commands", name, *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def done(files):
    given = seed_settings(files)
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
    matches = SeedRule(SEEDS).match(documents())
    names = ["sea", "wood", ""]
    assert [row[3] for row in rows] == [names[label] for label in matches.labels]
    # Without a word nothing is said.
    assert rows[-1][1] == "" and {row[1] for row in rows[:-1]} == {"sea", "wood"}
    right = np.mean([row[1] == names[i % 2] for i, row in enumerate(rows[:120])])
    assert right > 0.95
    model = load_model(done / "model.keras", compile=False)
    probs = tf.nn.softmax(model(model.reader.rows(documents()).tokens)).numpy()
    shown = [float(row[2]) for row in rows]
    np.testing.assert_allclose(shown, probs.max(axis=1), atol=1e-4)
    header, *rows = _rows(done / "to_label.csv")
    assert header == ["id", "text"] and len({row[0] for row in rows}) == 10
    assert all(text == documents()[int(own[1:])] for own, text in rows)
    served = tf.saved_model.load(str(done / "saved_model")).signatures
    labels = served["classify"](texts=tf.constant(["wave", "a leaf"]))["labels"]
    assert labels.numpy().tolist() == [b"sea", b"wood"]
    labels = served["match"](texts=tf.constant(["harbours", "leaf"]))["labels"]
    assert labels.numpy().tolist() == [b"sea", b""]


def test_the_report(done):
    found = json.loads((done / "report.json").read_text())
    assert found["documents"] == 122
    matches = SeedRule(SEEDS).match(documents())
    assert found["labelled"] == (matches.labels >= 0).sum()
    assert sum(row["by_seeds"] for row in found["classes"]) == found["labelled"]
    assert "accuracy" not in found and len(found["changes"]) == 2
    (warning,) = found["warnings"]
    assert warning == "no document has the seeds sequoia"
    page = (done / "report.md").read_text()
    for heading in (
        *("How good it is", "Classes", "Seeds", "Words that may be seeds"),
        "Where seeds and the classifier disagree",
    ):
        assert f"## {heading}" in page
    assert "sequoia" in (done / "report.html").read_text()
    assert {path.name for path in (done / "report_files").iterdir()} == {
        *("balance.png", "confidence.png", "estimates.png"),
    }
    # Of seeds that are never wrong probes have no reason to doubt.
    estimates = found["estimates"]
    assert estimates["plain"] > 0.9 and estimates["deletion"] > 0.9
    assert len(estimates["by_class"]) == 2
    # Other words of the classes are suggested, none of the other class.
    for row in found["suggested"]:
        assert row["text"] in WORDS[row["class_name"]]
        assert row["text"] not in ("ship", "harbour", "tree", "forest")
    assert {row["text"] for row in found["suggested"]} >= {"wave", "leaf"}
    effect = found["deletion_effect"]
    assert effect["follows_plain"] == 1 and 0 <= effect["differ"] < 0.2


@pytest.mark.slow
@pytest.mark.landing
def test_labels_that_are_learnt_from(files, done, tmp_path, capsys):
    """Where seeds are wrong, labels set the classifier right; both judge it fairly."""
    wrong = {"sea": ["leaf", "harbour"], "wood": ["tree", "wave"]}
    (tmp_path / "seeds.json").write_text(json.dumps(wrong))
    names = ["sea", "wood"]
    lines = ["id,label", *(f"d{i},{names[i % 2]}" for i in range(0, 120, 2))]
    lines += [f"d{i},{names[i % 2]}" for i in range(1, 120, 2)]
    (tmp_path / "labels.csv").write_text("\n".join(lines[:91]))
    common = {
        "seed_words": str(tmp_path / "seeds.json"),
        "output_dir": str(tmp_path / "out"),
        "labels": str(tmp_path / "labels.csv"),
        "iterations": 1,
    }
    found = {}
    for use in ("estimate", "train", "both"):
        running.run(seed_settings(files, use_labels=use, **common))
        found[use] = json.loads((tmp_path / "out" / "report.json").read_text())
        rows = _rows(tmp_path / "out" / "predictions.csv")[1:121]
        right = np.mean([row[1] == names[i % 2] for i, row in enumerate(rows)])
        found[use]["right"] = right
    # Words that are seeds of the wrong class are in both.
    assert found["both"]["right"] == found["train"]["right"]
    assert found["train"]["right"] > found["estimate"]["right"] + 0.1
    assert "accuracy" not in found["train"]
    assert "--use_labels=both" in capsys.readouterr().out
    own = found["both"]["accuracy"]
    assert own["labels"] == 90 and own["low"] < found["both"]["right"]
    assert own["value"] > found["estimate"]["accuracy"]["value"] + 0.1
    assert (
        found["estimate"]["calibration"]["nll_after"]
        <= (found["estimate"]["calibration"]["nll_before"])
    )


def test_predictions_below_a_threshold_are_blank(files, done, tmp_path, capsys):
    folder = tmp_path / "out"
    shutil.copytree(done, folder)
    _, *before = _rows(done / "predictions.csv")
    level = float(np.median([float(row[2]) for row in before]))
    running.run(seed_settings(files, output_dir=str(folder), threshold=level))
    assert " are left blank, less probable than " in capsys.readouterr().out
    _, *rows = _rows(folder / "predictions.csv")
    assert [row[2] for row in rows] == [row[2] for row in before]
    blank = [not row[1] for row in rows]
    # Only what is rounded to the level may be on either side.
    expected = [not row[1] or float(row[2]) < level for row in before]
    differ = [i for i in range(len(rows)) if blank[i] != expected[i]]
    assert all(float(rows[i][2]) == round(level, 4) for i in differ) and any(blank)
    loaded = tf.saved_model.load(str(folder / "saved_model"))
    said = loaded.signatures["classify"](texts=tf.constant(documents()))[
        "labels"
    ].numpy()
    assert [not label for label in said] == blank
    report = json.loads((folder / "report.json").read_text())
    # Texts without a word are not counted.
    assert report["blank"] == sum(blank) - sum(not row[1] for row in before)


def test_labels_of_texts_without_words_and_files_without_labels(files, tmp_path):
    rule = SeedRule(SEEDS)
    given = seed_settings(files, deletion="none", iterations=0, epochs=1, length=20)
    texts = ["the ship", "a tree", "ship sail", "leaf tree", ""] * 3
    trainer = training.Trainer(given, rule, texts, rule.match(texts), tmp_path)
    truth = np.array([0, 1, 0, 1, 0] * 3)
    said = trainer.judged_with_labels(truth, "d")
    assert ((said < 0) == np.array([not text for text in texts])).all()
    sample = estimating.Sample(np.arange(5), np.array([0, 0, 1, 1, -1] * 3))
    found = estimating.accuracy(said, truth, [sample])
    assert found["labels"] == 12
    nothing = np.where(said < 0, truth, -1)
    assert estimating.accuracy(said, nothing, [sample]) is None
    empty = tmp_path / "empty.csv"
    empty.write_text("id,label\nd0,\n")
    with pytest.raises(ValueError, match="no document has a label; fill in"):
        running.run(
            seed_settings(files, labels=str(empty), output_dir=str(tmp_path / "o"))
        )


def test_what_decides_a_document(done):
    model = load_model(done / "model.keras", compile=False)
    tokens = model.reader.rows(["the wave an captain leaf"]).tokens[0]
    found = looking.deciding_words(model, tokens, 0, 1)
    assert set(found[:2]) == {"wave", "captain"} and "leaf" not in found
    assert looking.deciding_words(model, tokens, 1, 0)[0] == "leaf"


def test_the_embedded_corpus_and_other_encoders(tmp_path):
    seeds = {"text": ["unicode", "bytes"], "numbers": ["integer*", "modulo"]}
    (tmp_path / "seeds.json").write_text(json.dumps(seeds))
    given = settings.SeedClassifySettings(
        texts="python-docs",
        seed_words=str(tmp_path / "seeds.json"),
        output_dir=str(tmp_path / "out"),
    )
    settings.check_seed_classify_settings(given)
    corpus = reading.read_corpus(given)
    assert len(corpus.texts) > 1000 and min(map(len, corpus.texts)) >= 60
    rule = reading.read_rule(given.seed_words)
    texts = corpus.texts[:60]
    both = ["unicode of an integer", *texts]
    counts = {}
    for deletion in ("seeds", "all_seeds"):
        own = dataclasses.replace(given, deletion=deletion, length=20)
        trainer = training.Trainer(own, rule, both, rule.match(both), tmp_path)
        counts[deletion] = int(trainer.prepared.places[0].sum())
    # Of a tie no seed is of the own label.
    assert counts == {"seeds": 0, "all_seeds": 2}
    for encoder in ("averaged", "convolutional", "recurrent"):
        own = dataclasses.replace(given, encoder=encoder, length=20)
        trainer = training.Trainer(own, rule, texts, rule.match(texts), tmp_path)
        model = trainer.classifier(1)
        tokens = trainer.prepared.tokens
        assert tokens.dtype == np.uint16 and tokens.shape == (60, 20)
        assert model(tokens[:2].astype(np.int32)).shape == (2, 2)


@pytest.mark.slow
@pytest.mark.landing
def test_odd_documents_and_seeds(tmp_path):
    """One text has a class alone; others are equal, huge, empty, or hold NUL bytes."""
    texts = ["ship"] * 30 + ["a tree"] + ["the wave"] * 9
    texts += ["wave " * 200_000, "", "!?", "nul\x00byte", "a 'quoted'\ttext"]
    with open(tmp_path / "corpus.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    seeds = {"sea": ["ship", "the", "gun"], "wood": ["tree"], "air": ["gun", "wave"]}
    (tmp_path / "seeds.json").write_text(json.dumps(seeds))
    given = settings.SeedClassifySettings(
        texts=str(tmp_path / "corpus.jsonl"),
        seed_words=str(tmp_path / "seeds.json"),
        output_dir=str(tmp_path / "out"),
        epochs=1,
        iterations=1,
    )
    settings.check_seed_classify_settings(given)
    running.run(given)
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    told = " ".join(found["warnings"])
    assert "no document has the seeds gun" in told
    assert "stop words tell no class: the" in told
    assert "'gun' is a seed of air and sea" in told
    assert found["documents"] == 45 and found["classes"][2]["by_seeds"] == 1
    rows = _rows(tmp_path / "out" / "predictions.csv")[1:]
    assert [row[1] for row in rows[41:43]] == ["", ""] and rows[43][1] != ""
    # All in one class of one text: nothing can be judged without it.
    few = dataclasses.replace(given, overwrite=True, output_dir=str(tmp_path / "few"))
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in ("ship", "tree", "wave"))
    )
    running.run(few)
    found = json.loads((tmp_path / "few" / "report.json").read_text())
    assert (
        found["labelled"] == 3 and found["estimates"]["documents_where_seeds_meet"] == 0
    )


@pytest.mark.slow
@pytest.mark.landing
def test_an_encoder_that_was_trained_before(files, tmp_path):
    """Its pieces of words are read, whole seeds deleted, strings answered."""
    text = "\n".join(documents()[:100] * 3)
    (tmp_path / "text.txt").write_text(text)
    _run_command(
        "pretrain",
        f"--text={tmp_path / 'text.txt'}",
        "--objective=masked",
        "--num_layers=1",
        "--width=8",
        "--num_heads=2",
        "--max_size=300",
        "--length=16",
        "--steps=4",
        f"--output_dir={tmp_path / 'encoder'}",
    )
    given = seed_settings(
        files,
        encoder=str(tmp_path / "encoder"),
        output_dir=str(tmp_path / "out"),
        length=16,
        iterations=0,
        epochs=1,
        learning_rate=None,
    )
    settings.check_seed_classify_settings(given)
    running.run(given)
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    assert found["suggested"] == [] and found["documents"] == 122
    served = tf.saved_model.load(str(tmp_path / "out" / "saved_model")).signatures
    labels = served["classify"](texts=tf.constant(["wave", "a leaf"]))["labels"]
    assert {*labels.numpy()} <= {b"sea", b"wood"}


@pytest.mark.slow
def test_labels_tell_the_accuracy_and_change_nothing_else(files, done, capsys):
    before = (done / "predictions.csv").read_bytes()
    chosen = _rows(done / "to_label.csv")[1:]
    names = ["sea", "wood"]
    lines = ["id,label", *(f"{own},{names[int(own[1:]) % 2]}" for own, _ in chosen)]
    (files / "labels.csv").write_text("\n".join(lines))
    running.run(seed_settings(files, labels=str(files / "labels.csv")))
    found = json.loads((done / "report.json").read_text())["accuracy"]
    assert found["labels"] == 10 and found["low"] < found["value"] <= found["high"]
    assert "accuracy, from 10 labels" in capsys.readouterr().out
    assert (done / "predictions.csv").read_bytes() == before
    # Of other documents they are a simple sample.
    (files / "labels.csv").write_text("id,label\nd0,sea\nd1,wood\nd2,wood\n")
    running.run(seed_settings(files, labels=str(files / "labels.csv")))
    found = json.loads((done / "report.json").read_text())["accuracy"]
    assert found["value"] == pytest.approx(2 / 3)


def test_words_that_tell_nothing_have_a_ratio(files, tmp_path):
    rule = SeedRule({"a": ["the"], "b": ["not"]})
    texts = ["the of", "not of"] * 5
    given = seed_settings(files, deletion="random", length=20)
    trainer = training.Trainer(given, rule, texts, rule.match(texts), tmp_path)
    assert trainer.ratio == 0.5
    # Of a long document what is read counts.
    texts = ["the " + "ship " * 400, "not " + "tree " * 400]
    trainer = training.Trainer(given, rule, texts, rule.match(texts), tmp_path)
    assert trainer.ratio == round((1 / 20) ** (1 / 19), 4)


@pytest.mark.landing
def test_a_killed_run_ends_with_the_same_predictions(files, done, tmp_path):
    flags = {
        name: value
        for name, value in dataclasses.asdict(seed_settings(files)).items()
        if value not in (None, True, False)
    } | {"output_dir": str(tmp_path / "killed")}
    command = [sys.executable, "-m", "rlm_tf.commands", "seed_classify"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    folder = tmp_path / "killed"
    trainings = folder / "trainings"
    # Within trainings of every kind and behind one, and as results are written.
    for place in (
        trainings / "training1",
        trainings / "training1" / "said.npz",
        trainings / "training3",
        trainings / "judged" / "fold1",
        trainings / "plain",
        folder / "predictions.csv",
        folder / "saved_model",
    ):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while not place.exists() and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert place.exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert (folder / "saved_model" / "saved_model.pb").exists()
    for name in ("predictions.csv", "to_label.csv"):
        found = (tmp_path / "killed" / name).read_bytes()
        assert found == (done / name).read_bytes()


@pytest.mark.landing
def test_by_default_training_on_its_own_predictions_keeps_all_classes(tmp_path):
    """Of a small corpus, as its user has it: nothing but texts and seeds are given."""
    given = settings.SeedClassifySettings(
        texts="python-docs",
        seed_words=str(pathlib.Path(__file__).parents[2] / _DEMO_SEEDS),
        output_dir=str(tmp_path / "out"),
        iterations=3,
    )
    rule = reading.read_rule(str(given.seed_words))
    texts = reading.read_corpus(given).texts[::4]
    matches = rule.match(texts)
    trainer = training.Trainer(given, rule, texts, matches, tmp_path / "out")
    found = trainer.main()
    assert trainer.drift is None and len(found.rounds) == 4
    known = matches.labels >= 0
    first, *_, last = (
        np.mean(each[known] == matches.labels[known]) for each in found.rounds
    )
    assert last > first - 0.1
    before, after = (
        np.bincount(each, minlength=len(rule.class_names))
        for each in found.rounds[[0, -1]]
    )
    assert (after > 0.5 * before).all()

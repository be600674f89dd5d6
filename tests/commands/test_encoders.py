"""`rlm_tf classifier`, `pretrain`, `finetune`, and what is done with their folders."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from rlm_tf.commands.encoders import (
    classifying,
    examples,
    finetuning,
    settings,
    using,
)
from rlm_tf.commands.encoders.folder import load_encoder
from rlm_tf.data import encoder_vocabulary
from rlm_tf.data.labelled.table_files import read_labelled
from rlm_tf.loading import load_model
from rlm_tf.models import Electra, SequenceClassifier
from rlm_tf.serving.arguments import MAX_TEXT_BYTES
from tests.commands.labelled_files import WORDS, report, sentence
from tests.experiments.binaries import run_binary


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> pathlib.Path:
    """A text of two kinds of sentences, and a table of labelled ones."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(1)
    kinds = [*WORDS]
    lines = [sentence(rng, kinds[i % 2]) for i in range(800)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    with open(folder / "train.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["body", "kind"])
        for i in range(80):
            table.writerow([sentence(rng, kinds[i % 2]), kinds[i % 2]])
    return folder


@pytest.fixture(scope="module")
def small(files) -> settings.ClassifierSettings:
    return settings.ClassifierSettings(
        text=str(files / "text.txt"),
        train=str(files / "train.csv"),
        text_column="body",
        label_column="kind",
        output_dir=str(files / "out"),
        objective="electra",
        steps=4,
        epochs=2,
        max_size=120,
        width=8,
        num_layers=1,
    )


@pytest.fixture(scope="module")
def trained(small) -> pathlib.Path:
    classifying.run(small)
    return pathlib.Path(str(small.output_dir))


@pytest.mark.slow
def test_everything_is_written(trained):
    common = {
        "checkpoints",
        "metrics.jsonl",
        "model.keras",
        "report.html",
        "report.json",
        "report.md",
        "report_files",
        "saved_model",
        "settings.json",
        "vocabulary.txt",
    }
    assert {path.name for path in trained.iterdir()} == common | {"encoder"}
    assert {path.name for path in (trained / "encoder").iterdir()} == common | {
        "plan.json"
    }
    page = (trained / "report.md").read_text()
    for heading in ("16 test texts", "Classes", "Confusion", "Mistakes", "Training"):
        assert f"## {heading}" in page
    page = (trained / "encoder" / "report.md").read_text()
    for heading in ("Masked words of held-out text", "Training", "What it would say"):
        assert f"## {heading}" in page
    # A text that is read rarely needs no dropout, the few examples do.
    assert report(trained / "encoder")["plan"]["dropout"] == 0
    assert load_model(trained / "model.keras").encoder.dropout == 0.1
    (warning,) = report(trained / "encoder")["warnings"]
    assert warning.startswith("the encoder finds no replaced words (")
    assert f"warning: {warning}" not in page and warning in page
    for row in report(trained / "encoder")["examples"]:
        assert row["text"].count("[MASK]") == 1 and len(row["found"]) == 3


@pytest.mark.slow
def test_scores_are_those_of_the_files(small, trained):
    found, given = report(trained), examples.read_examples(small)
    encoder = load_encoder(trained / "encoder")
    assert isinstance(encoder.model, Electra) and not encoder.is_published
    model = load_model(trained / "model.keras", compile=False)
    assert isinstance(model, SequenceClassifier) and model.pooling == "mean"
    said = using._signatures(str(trained))["classify"](texts=given.test.texts)
    names = np.array(given.test.names)[given.test.labels]
    right = np.array([label.decode() for label in said["labels"].numpy()]) == names
    assert found["accuracy"] == pytest.approx(right.mean())
    assert found["majority_accuracy"] == 0.5
    # Every sentence has a word that says its kind.
    assert found["tfidf_accuracy"] > 0.8
    peer = examples.linear_peer(given).predictions == given.test.labels
    assert found["ahead_of_tfidf"] == pytest.approx(right.mean() - peer.mean())
    confusion = np.array(found["confusion"])
    assert confusion.sum() == found["examples"] == 16
    assert np.trace(confusion) == right.sum()
    logs = report(trained / "encoder")["curve"][0]
    for part in ("generator", "discriminator"):
        assert logs[f"gradient_norm_{part}"] > 0 and logs[f"update_{part}"] > 0


@pytest.mark.slow
def test_the_same_command_goes_on_or_is_done(small, trained, capsys):
    before = (trained / "report.json").read_bytes()
    classifying.run(small)
    assert capsys.readouterr().out.count("done before") == 2
    assert (trained / "report.json").read_bytes() == before
    other = dataclasses.replace(small, epochs=3)
    with pytest.raises(ValueError, match="epochs was 2 and is 3"):
        classifying.run(other)


@pytest.mark.slow
def test_lines_are_classified_and_masks_are_filled(trained, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("the old ship\na tree\n\n"))
    using.classify(settings.ClassifySettings(model=str(trained), batch_size=2))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    for line in lines:
        label, probability = line.split("\t")
        assert label in WORDS and 0.5 <= float(probability) <= 1
    using.fill_mask(
        settings.FillMaskSettings(
            model=str(trained / "encoder"), text="the [MASK] ship and [MASK]", k=3
        )
    )
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert [len(line.split("  ")) for line in lines] == [3, 3] and not shown.err
    using.fill_mask(
        settings.FillMaskSettings(
            model=str(trained / "encoder"), text="the ship " * 200 + "[MASK]"
        )
    )
    shown = capsys.readouterr()
    assert not shown.out and "its end was left out" in shown.err
    monkeypatch.setattr(sys, "stdin", io.StringIO("the ship\n" + "a tree " * 300))
    using.classify(settings.ClassifySettings(model=str(trained)))
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert "1 line longer than what is read" in shown.err
    for flag, model, wanted in (
        (using.fill_mask, trained, "fills no masks"),
        (using.classify, trained / "encoder", "is no classifier"),
    ):
        kind = "FillMask" if flag is using.fill_mask else "Classify"
        options = {"text": "[MASK]"} if flag is using.fill_mask else {}
        given = getattr(settings, f"{kind}Settings")(model=str(model), **options)
        with pytest.raises(ValueError, match=wanted):
            flag(given)


@pytest.mark.slow
def test_another_vocabulary_is_noticed_by_its_words(files, trained, tmp_path):
    copy = tmp_path / "encoder"
    copy.mkdir()
    for name in ("report.json", "model.keras"):
        (copy / name).write_bytes((trained / "encoder" / name).read_bytes())
    ours = load_encoder(trained / "encoder").vocabulary
    with pytest.raises(FileNotFoundError, match=r"has no vocabulary.txt; let `rlm_tf"):
        load_encoder(copy)
    text = (files / "text.txt").read_text().replace("ship", "shop")
    other = encoder_vocabulary(text, len(ours))
    assert len(other) == len(ours)
    other.save(copy / "vocabulary.txt")
    with pytest.raises(ValueError, match="was trained with: some words differ"):
        load_encoder(copy)


@pytest.mark.slow
def test_a_classifier_is_no_encoder(trained):
    where = re.escape(str(trained / "encoder"))
    with pytest.raises(ValueError, match=f"is a classifier; its encoder is in {where}"):
        load_encoder(trained)


@pytest.mark.slow
def test_encoders_that_do_not_know_what_is_needed_are_warned_of(trained):
    found = load_encoder(trained / "encoder")
    pairs = settings.FinetuneSettings(text_b_column="other")
    # This one was trained for four steps.
    nothing, warning = finetuning.encoder_warnings(pairs, found)
    assert nothing.startswith("the encoder has learnt next to nothing (its report.md")
    assert "--two_texts" in warning
    assert report(trained)["warnings"] == [nothing]
    known = found._replace(has_learnt=True)
    assert not finetuning.encoder_warnings(settings.FinetuneSettings(), known)
    known = known._replace(knows_pairs=True)
    assert not finetuning.encoder_warnings(pairs, known)


def test_an_encoder_is_not_replaced_by_a_classifier(files):
    (files / "config.json").touch()
    given = settings.FinetuneSettings(
        encoder=str(files),
        train=str(files / "train.csv"),
        output_dir=str(files / "more" / ".."),
    )
    with pytest.raises(ValueError, match="is --encoder's folder"):
        settings.check_finetune_settings(given)


@pytest.mark.slow
@pytest.mark.landing
def test_a_killed_run_ends_as_if_nothing_had_been(small, tmp_path):
    """SIGKILL in pre-training and in fine-tuning; the reports are the same."""
    flags = []
    for field in dataclasses.fields(small):
        value = getattr(small, field.name)
        if value is not None and value != field.default and field.name != "output_dir":
            flags.append(f"--{field.name}={value}")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run = functools.partial(run_binary, "classifier", *flags, package="rlm_tf.commands")
    run(f"--output_dir={whole}", check=True)
    command = [sys.executable, "-m", "rlm_tf.commands.classifier", *flags]
    command.append(f"--output_dir={killed}")
    for folder in (killed / "encoder", killed):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        ends = time.monotonic() + 120
        while not any((folder / "checkpoints").glob("checkpoint-*")):
            assert time.monotonic() < ends and process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
        assert not (folder / "report.json").exists()
    run(f"--output_dir={killed}", check=True)
    # Files of models tell when they were written.
    apart = {"training_seconds", "curve", "settings", "encoder", "model_sha256"}
    for name in ("encoder", "."):
        found, expected = report(killed / name), report(whole / name)
        for key in expected.keys() - apart:
            assert found[key] == expected[key], key
        for ours, theirs in zip(found["curve"], expected["curve"], strict=True):
            assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


# === Examples and their peers ===


def _labelled(files, **options):
    return settings.FinetuneSettings(
        encoder="none",
        train=str(files / "train.csv"),
        text_column="body",
        label_column="kind",
        output_dir="none",
        **options,
    )


def test_parts_are_disjoint_and_repeatable(files):
    first, second = (examples.read_examples(_labelled(files)) for _ in range(2))
    assert first.digest() == second.digest()
    assert [len(part) for part in first[:3]] == [58, 6, 16]
    assert first.digest() != examples.read_examples(_labelled(files, seed=2)).digest()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text_column": "bodi"}, r"has no column 'bodi' \(did you mean 'body'\?\)"),
        ({"label_column": "body"}, r"found \d+ of 80 labels to differ"),
        ({"regression": True}, "expected a number as label, found"),
    ],
)
def test_tables_that_cannot_be(files, options, message):
    given = dataclasses.replace(_labelled(files), **options)
    with pytest.raises(ValueError, match=message):
        examples.read_examples(given)


def test_unknown_labels_and_too_few_examples(files, tmp_path):
    (tmp_path / "test.csv").write_text("body,kind\nthe ship,air\n")
    with pytest.raises(ValueError, match="unknown label 'air'; expected one of sea,"):
        examples.read_examples(_labelled(files, test=str(tmp_path / "test.csv")))
    for rows, message in (
        ("a ship,sea\n" * 6, "labels of two classes at least .* found sea"),
        ("a ship,sea\na tree,wood\n" * 4, "8 examples are too few to hold some out"),
    ):
        (tmp_path / "train.csv").write_text(f"body,kind\n{rows}")
        few = dataclasses.replace(_labelled(files), train=str(tmp_path / "train.csv"))
        with pytest.raises(ValueError, match=message):
            examples.read_examples(few)
    # Some are held out of few ones, too; of another mark between columns it is told.
    (tmp_path / "train.csv").write_text("body,kind\n" + "a ship,sea\na tree,wood\n" * 6)
    parts = examples.read_examples(few)
    assert [len(part) for part in parts[:3]] == [4, 4, 4]
    (tmp_path / "train.csv").write_text("body;kind\na ship;sea\n")
    with pytest.raises(ValueError, match=r"is one column; expected .* commas .*';'"):
        examples.read_examples(few)


def test_lines_and_cells_of_more_than_a_megabyte(tmp_path, monkeypatch, capsys):
    long = "a" * (MAX_TEXT_BYTES - 1) + "\u00e9\u00e9"
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"ship\n{long}\n"))
    ((first, second),) = using._batches(4)
    assert first == "ship" and second == "a" * (MAX_TEXT_BYTES - 1)
    assert "line 2 is read up to 1,000,000 bytes" in capsys.readouterr().err
    path = tmp_path / "big.csv"
    path.write_text(f"text,label\n{long},x\nship,y\n")
    assert read_labelled(path).texts == [long, "ship"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": None}, "needs --text"),
        ({"objective": "bert"}, "--objective must be one of electra, masked"),
        ({"width": 100, "num_heads": 3}, "--width=100 must be a multiple"),
        ({"mask_ratio": 0.0}, "--mask_ratio"),
        ({"mask_ratio": 1.0}, r"--mask_ratio must lie in \(0, 1\), found 1.0"),
        ({"dropout": 1.0}, r"--dropout must lie in \[0, 1\)"),
        ({"minutes": 0.0}, "--minutes must be positive"),
        ({"length": 4}, "--length must be at least 8"),
        ({"strategy": "tpu"}, "--strategy must be one of"),
    ],
)
def test_settings_of_pretraining(files, changes, message):
    given = settings.PretrainSettings(
        text=str(files / "text.txt"), output_dir=str(files / "new")
    )
    settings.check_pretrain_settings(given)
    with pytest.raises(ValueError, match=message):
        settings.check_pretrain_settings(dataclasses.replace(given, **changes))


def test_settings_of_the_others(files, tmp_path):
    given = _labelled(files)
    with pytest.raises(ValueError, match="--encoder=none is no folder"):
        settings.check_finetune_settings(given)
    with pytest.raises(ValueError, match="`rlm_tf pretrain` wrote none"):
        settings.check_finetune_settings(
            dataclasses.replace(given, encoder=str(tmp_path))
        )
    for changes, message in (
        ({"rate_decay": 0.0}, "--rate_decay"),
        ({"warm_up": 1.0}, "--warm_up"),
        ({"dropout": -0.1}, "--dropout must lie in"),
        ({"pooling": "max"}, "--pooling must be one of mean, cls"),
    ):
        with pytest.raises(ValueError, match=message):
            settings.check_finetune_settings(dataclasses.replace(given, **changes))
    both = settings.ClassifierSettings(
        train=str(files / "train.csv"), output_dir=str(tmp_path / "new"), steps=3
    )
    with pytest.raises(ValueError, match="--steps and --epochs go together"):
        settings.check_classifier_settings(both)
    with pytest.raises(ValueError, match=r"must have \[MASK\] in it"):
        settings.check_fill_mask_settings(
            settings.FillMaskSettings(model=str(tmp_path), text="nothing")
        )

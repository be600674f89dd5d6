"""`rlm_tf classifier`, `pretrain`, `finetune`, and what is done with their folders."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
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
    finetuning_report,
    pretraining,
    pretraining_plan,
    pretraining_report,
    settings,
    using,
)
from rlm_tf.commands.encoders.folder import TrainedEncoder, load_encoder
from rlm_tf.data import LabelledTexts, encoder_vocabulary
from rlm_tf.data.labelled.table_files import read_labelled
from rlm_tf.data.text.special_tokens import FIRST_IDS
from rlm_tf.loading import load_model
from rlm_tf.models import Electra, MaskedLanguageModel, SequenceClassifier
from rlm_tf.serving.arguments import MAX_TEXT_BYTES
from tests.experiments.binaries import run_binary
from tests.models.encoders import toy

_WORDS = {
    "sea": ["ship", "wave", "sail", "harbour", "captain"],
    "wood": ["tree", "leaf", "forest", "root", "branch"],
}
_OTHERS = ["the", "a", "old", "saw", "near", "went", "and", "small", "with", "to"]


def _sentence(rng, kind):
    words = rng.choice(_OTHERS, 6)
    words[rng.integers(6)] = rng.choice(_WORDS[kind])
    return " ".join(words)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> pathlib.Path:
    """A text of two kinds of sentences, and a table of labelled ones."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(1)
    kinds = [*_WORDS]
    lines = [_sentence(rng, kinds[i % 2]) for i in range(800)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    with open(folder / "train.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["body", "kind"])
        for i in range(80):
            table.writerow([_sentence(rng, kinds[i % 2]), kinds[i % 2]])
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


def _report(folder):
    return json.loads((folder / "report.json").read_text())


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
    assert _report(trained / "encoder")["plan"]["dropout"] == 0
    assert load_model(trained / "model.keras").encoder.dropout == 0.1
    (warning,) = _report(trained / "encoder")["warnings"]
    assert warning.startswith("the encoder finds no replaced words (")
    assert f"warning: {warning}" not in page and warning in page
    for row in _report(trained / "encoder")["examples"]:
        assert row["text"].count("[MASK]") == 1 and len(row["found"]) == 3


@pytest.mark.slow
def test_scores_are_those_of_the_files(small, trained):
    found, given = _report(trained), examples.read_examples(small)
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
    logs = _report(trained / "encoder")["curve"][0]
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


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> pathlib.Path:
    """Tables of pairs: do both texts have one kind?"""
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(4)
    kinds = [*_WORDS]
    for name, number in (("train", 80), ("valid", 12)):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["one", "other", "same"])
            for i in range(number):
                first, second = kinds[i % 2], kinds[rng.integers(2)]
                sentences = [_sentence(rng, kind) for kind in (first, second)]
                table.writerow([*sentences, "yes" if first == second else "no"])
    return folder


@pytest.mark.slow
def test_pairs_within_minutes_of_their_tables_alone(pairs, capsys):
    """No text, a table to choose on, minutes; once more, and after a kill."""
    folder = pairs / "out"
    chosen = settings.ClassifierSettings(
        train=str(pairs / "train.csv"),
        valid=str(pairs / "valid.csv"),
        text_column="one",
        text_b_column="other",
        label_column="same",
        output_dir=str(folder),
        minutes=0.1,
        max_size=120,
        width=8,
        num_layers=1,
    )
    classifying.run(chosen)
    plan = json.loads((folder / "encoder" / "plan.json").read_text())
    assert plan["two_texts"] and plan["length"] == 64
    written = json.loads((folder / "encoder" / "settings.json").read_text())
    # The table is none of text.
    assert written["valid"] is None
    found = _report(folder)
    assert "12 of " in " ".join(found["notes"])
    served = using._signatures(str(folder))["classify"]
    said = served(texts=["the ship"], texts_b=["a tree"])
    assert said["labels"].numpy()[0] in (b"yes", b"no")
    capsys.readouterr()
    classifying.run(chosen)
    assert capsys.readouterr().out.count("done before") == 2
    # As a kill before the report leaves it.
    (folder / "report.json").unlink()
    classifying.run(chosen)
    assert capsys.readouterr().out.count("done before") == 1
    again = _report(folder)
    assert again["accuracy"] == found["accuracy"]
    # With other minutes it is another run.
    other = dataclasses.replace(chosen, minutes=0.2)
    with pytest.raises(ValueError, match=r"minutes was 0\.0\d* and is 0\.1"):
        classifying.run(other)


def test_tables_of_few_words_make_short_rows():
    train, valid = b"a b c d " * 60, b"a b c d " * 10
    assert classifying._row_length("x.csv", train, valid) == 32
    with pytest.raises(ValueError, match=r"its \d+ words are too few .* give --text"):
        classifying._row_length("x.csv", train[:40], valid[:28])


def test_fewer_rows_than_a_batch_are_one(tmp_path):
    chosen = settings.PretrainSettings(output_dir=str(tmp_path), length=16)
    text = "\n".join(_sentence(np.random.default_rng(1), "sea") for _ in range(5))
    run = pretraining.Run(chosen, tmp_path, (text.encode(), text.encode()))
    rows, _ = run._rows(text.encode(), text.encode(), encoder_vocabulary(text, 120))
    assert rows.batch_size == len(rows.tokens) < 16 and rows.steps == 1
    assert "--batch_size is 16" in run.warnings[0]


@pytest.mark.slow
def test_lines_are_classified_and_masks_are_filled(trained, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("the old ship\na tree\n\n"))
    using.classify(settings.ClassifySettings(model=str(trained), batch_size=2))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    for line in lines:
        label, probability = line.split("\t")
        assert label in _WORDS and 0.5 <= float(probability) <= 1
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


def test_rows_of_two_texts_and_words_masked_whole(tmp_path):
    rng = np.random.default_rng(2)
    lines = [_sentence(rng, kind) for kind in [*_WORDS] * 100]
    text = "\n".join(lines).encode()
    chosen = settings.PretrainSettings(
        output_dir=str(tmp_path),
        steps=4,
        width=8,
        num_layers=1,
        length=32,
        two_texts=True,
        whole_words=True,
    )
    run = pretraining.Run(chosen, tmp_path, (text, text))
    vocabulary = encoder_vocabulary(text, 120)
    rows, held = run._rows(text, text, vocabulary)
    # Nine of ten have a second text.
    assert 0.8 < (rows.segments.max(axis=1) == 1).mean() < 1
    plan = run._plan(vocabulary, rows)
    assert plan.lines()[2:] == ["words are masked whole", "rows of two texts"]
    ((batch,),) = pretraining.looked_at(plan, vocabulary, held).take(1)
    tokens, _, positions, segments = (part.numpy() for part in batch)
    assert segments.any()
    starts = np.array([t.startswith("\u2581") for t in vocabulary.tokens])[tokens]
    goes_on = (tokens > 4) & ~starts
    cut = (positions[:, :-1] > 0) & goes_on[:, 1:] & (positions[:, 1:] == 0)
    # A first word that does not fit is cut.
    assert (cut.sum(axis=1) <= 1).all()
    whole = (positions[:, :-1] > 0) & goes_on[:, 1:] & (positions[:, 1:] > 0)
    assert whole.sum() > cut.sum()
    # As it was planned, so it is resumed.
    assert run._plan(vocabulary, rows) == plan


@pytest.mark.parametrize("rate_decay", [1.0, 0.5])
def test_weight_decay_is_not_of_biases(rate_decay):
    model = MaskedLanguageModel(toy.encoder())
    trained = TrainedEncoder(model, encoder_vocabulary(b"a b c " * 9, 20), "", False)
    chosen = settings.FinetuneSettings(weight_decay=0.5, rate_decay=rate_decay)
    labels = LabelledTexts(["a", "b"], np.array([0, 1], np.int32), ("x", "y"))
    given = examples.Examples(labels, labels, labels, [])
    found = finetuning.Run(chosen, pathlib.Path(), given)._build(given, trained)
    variables = found.trainable_variables
    before = [variable.numpy() for variable in variables]
    found.optimizer.build(variables)
    found.optimizer.apply([0 * v.value for v in variables], variables)
    for variable, old in zip(variables, before, strict=True):
        # Those of positions, too.
        names = ("bias", "scale", "gamma", "beta")
        is_spared = any(name in variable.path for name in names)
        changed = np.any(variable.numpy() != old)
        assert changed == (not is_spared and np.any(old)), variable.path


def test_a_detector_that_knows_the_share_alone():
    """Of 10 tokens, two are special and one, of eight words, is replaced."""
    tokens, ids = np.array([[2, 5, 6, 7, 8, 9, 5, 6, 7, 3, 0]]), FIRST_IDS
    nothing = pretraining_report._of_nothing(0.1, tokens, ids)
    entropy = -(np.log(1 / 8) / 8 + 7 / 8 * np.log(7 / 8))
    assert nothing == pytest.approx(0.8 * entropy)
    results = {"discriminator": 0.9 * nothing, "discriminator_of_nothing": nothing}
    assert pretraining_report.detector_warning(results) == []


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
    apart = {"training_seconds", "curve", "settings", "encoder"}
    for name in ("encoder", "."):
        found, expected = _report(killed / name), _report(whole / name)
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


def _parts(labels, texts, names=("a", "b")):
    part = LabelledTexts(list(texts), np.array(labels), names)
    return examples.Examples(part, part, part, [])


def test_lines_and_cells_of_more_than_a_megabyte(tmp_path, monkeypatch, capsys):
    long = "a" * (MAX_TEXT_BYTES - 1) + "\u00e9\u00e9"
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"ship\n{long}\n"))
    ((first, second),) = using._batches(4)
    assert first == "ship" and second == "a" * (MAX_TEXT_BYTES - 1)
    assert "line 2 is read up to 1,000,000 bytes" in capsys.readouterr().err
    path = tmp_path / "big.csv"
    path.write_text(f"text,label\n{long},x\nship,y\n")
    assert read_labelled(path).texts == [long, "ship"]


def test_peers_of_numbers_and_of_texts_without_words():
    texts = [f"{'very ' * i}good" for i in range(8)]
    numbers = _parts(np.arange(8, dtype=np.float32), texts, ())
    peer = examples.linear_peer(numbers)
    assert examples.score_of(numbers.test, peer.predictions) > 0.9
    assert examples.score_of(numbers.test, examples.constant_peer(numbers)) == 0
    results = finetuning_report.measure(numbers, np.arange(8.0))
    assert results["spearman"] == pytest.approx(1) and not results["squared_error"]
    empty = _parts([0, 1, 1, 1], [""] * 4)
    assert examples.linear_peer(empty).about == "no word was found"
    np.testing.assert_array_equal(examples.linear_peer(empty).predictions, 1)


def test_the_verdict_names_the_better_one():
    given = _parts([0, 1] * 8, ["good", "bad"] * 8)
    right = np.eye(2)[given.test.labels]
    for logits, wanted in (
        (right, "level with tf-idf (standard error 0.0 points)"),
        (-right, "behind tf-idf"),
    ):
        results = finetuning_report.measure(given, logits)
        assert results["tfidf_accuracy"] == 1
        assert any(wanted in line for line in finetuning_report.summary(results))
    assert len(results["errors"]) == 16 and results["errors"][0]["said"] == "b"
    one = _parts([0], ["good"])._replace(train=given.train, valid=given.valid)
    results = finetuning_report.measure(one, right[:1])
    assert results["ahead_of_tfidf_error"] is None
    assert any(
        "one example tells" in line for line in finetuning_report.summary(results)
    )


# === Mistakes ===


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


@pytest.mark.parametrize(
    ("given", "passes", "rate"),
    [(None, 30, 0.0), (None, 31, 0.1), (0.0, 500, 0.0), (0.2, 1, 0.2)],
)
def test_dropout_of_pretraining(given, passes, rate):
    assert pretraining._dropout(given, passes) == rate


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


def test_a_text_that_is_too_short(tmp_path):
    (tmp_path / "a.txt").write_text("a few words\n" * 3)
    given = settings.PretrainSettings(
        text=str(tmp_path / "a.txt"), output_dir=str(tmp_path / "out"), steps=1
    )
    with pytest.raises(ValueError, match=r"vocabulary|pieces|too short"):
        pretraining.run(given)


def test_a_step_of_each_objective_has_rates_of_its_own():
    plan = pretraining_plan.Plan(
        "electra", 20, 8, 1, 1, 1, False, 8, 2, 1, 1, 0, 0.01, 0.02, 50.0, 0.15,
        2.0, 0.1, 1, None,
    )  # fmt: skip
    model = pretraining_plan.build(plan)
    rates = model.optimizer.learning_rates
    assert rates == pytest.approx({"generator": 0.02, "discriminator": 0.01})
    assert model.embeddings == "separate"
    masked = pretraining_plan.build(dataclasses.replace(plan, objective="masked"))
    assert float(masked.optimizer.learning_rate) == pytest.approx(0.01)
    assert pretraining_plan.encoder_of(masked) is masked.encoder

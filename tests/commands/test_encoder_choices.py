"""What the commands of encoders choose by texts, tables and minutes."""

from __future__ import annotations

import csv
import dataclasses
import json
import pathlib

import numpy as np
import pytest

from rlm_tf.commands.encoders import (
    classifying,
    examples,
    finetuning,
    finetuning_report,
    fitting,
    pretraining,
    pretraining_plan,
    pretraining_report,
    pretraining_text,
    settings,
    using,
)
from rlm_tf.commands.encoders.folder import TrainedEncoder, encoder_of, load_encoder
from rlm_tf.data import LabelledTexts, encoder_vocabulary
from rlm_tf.data.text.special_tokens import FIRST_IDS
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import MaskedLanguageModel, SequenceClassifier
from rlm_tf.optimizers import DecoupledOptimizer
from tests.commands.labelled_files import WORDS, parts, report, sentence
from tests.models.encoders import toy


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> pathlib.Path:
    """Tables of pairs: do both texts have one kind?"""
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(4)
    kinds = [*WORDS]
    for name, number in (("train", 80), ("valid", 12)):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["one", "other", "same"])
            for i in range(number):
                first, second = kinds[i % 2], kinds[rng.integers(2)]
                sentences = [sentence(rng, kind) for kind in (first, second)]
                table.writerow([*sentences, "yes" if first == second else "no"])
    return folder


def _of_pairs(pairs: pathlib.Path) -> settings.ClassifierSettings:
    return settings.ClassifierSettings(
        train=str(pairs / "train.csv"),
        valid=str(pairs / "valid.csv"),
        text_column="one",
        text_b_column="other",
        label_column="same",
        output_dir=str(pairs / "out"),
        minutes=0.1,
        max_size=120,
        width=8,
        num_layers=1,
    )


def test_pairs_are_pretrained_on_as_two_texts(pairs, monkeypatch):
    """What pre-training is told of tables alone, and fine-tuning of the minutes."""
    asked = []

    class _Run:
        def __init__(self, *given):
            asked.append(given)

        def run(self):
            pass

    monkeypatch.setattr(pretraining, "Run", _Run)
    monkeypatch.setattr(finetuning, "Run", _Run)
    classifying.run(_of_pairs(pairs))
    (first, where, (train, held)), (second, _, found) = asked
    assert first.two_texts and first.length == 64 and first.valid is None
    assert first.minutes == pytest.approx(0.07) and where.name == "encoder"
    # All texts that are trained on, the last tenth of them held out.
    lines = train.decode().split("\n")[:-1] + held.decode().split("\n")[:-1]
    assert lines == found.train.texts + found.train.texts_b
    assert held.count(b"\n") == round(len(lines) / 10)
    assert second.valid == str(pairs / "valid.csv") and len(found.valid) == 12
    assert 0.05 < second.minutes <= 0.1 * 2 / 3


@pytest.mark.slow
@pytest.mark.landing
def test_pairs_within_minutes_of_their_tables_alone(pairs, capsys):
    """No text, a table to choose on, minutes; once more, and after a kill."""
    chosen, folder = _of_pairs(pairs), pairs / "out"
    classifying.run(chosen)
    plan = json.loads((folder / "encoder" / "plan.json").read_text())
    assert plan["two_texts"] and plan["length"] == 64
    written = json.loads((folder / "encoder" / "settings.json").read_text())
    # The table is none of text.
    assert written["valid"] is None
    found = report(folder)
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
    again = report(folder)
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
    text = "\n".join(sentence(np.random.default_rng(1), "sea") for _ in range(5))
    vocabulary, warnings = encoder_vocabulary(text, 120), []
    both = (text.encode(), text.encode())
    rows, _ = pretraining_text.rows_of(chosen, vocabulary, *both, [], warnings)
    assert rows.batch_size == len(rows.tokens) < 16 and rows.steps == 1
    assert "--batch_size is 16" in warnings[0]


def test_rows_of_two_texts_and_words_masked_whole(tmp_path):
    rng = np.random.default_rng(2)
    lines = [sentence(rng, kind) for kind in [*WORDS] * 100]
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
    rows, held = pretraining_text.rows_of(chosen, vocabulary, text, text, [], [])
    # Nine of ten have a second text.
    assert 0.8 < (rows.segments.max(axis=1) == 1).mean() < 1
    plan = run._plan(vocabulary, rows, held)
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
    assert run._plan(vocabulary, rows, held) == plan


@pytest.mark.parametrize("rate_decay", [1.0, 0.5])
def test_weight_decay_is_not_of_biases(rate_decay):
    model = MaskedLanguageModel(toy.encoder())
    vocabulary = encoder_vocabulary(b"a b c " * 9, 20)
    trained = TrainedEncoder(model, vocabulary, "", False, False)
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
    assert pretraining_report.learning_warning(results) == []


@pytest.mark.parametrize(("own", "count"), [(6.0, 0), (6.99, 1), (7.1, 1)])
def test_a_model_that_knows_frequencies_alone(own, count):
    scores = {"encoder": {"cross_entropy": own}, "frequency": {"cross_entropy": 7.0}}
    found = {"scores": scores, "discriminator_of_nothing": None}
    warnings = pretraining_report.learning_warning(found)
    assert len(warnings) == count
    assert all(f"({own:.2f} nats a word; frequency has 7.00" in w for w in warnings)


def test_peers_of_numbers_and_of_texts_without_words():
    texts = [f"{'very ' * i}good" for i in range(8)]
    numbers = parts(np.arange(8, dtype=np.float32), texts, ())
    peer = examples.linear_peer(numbers)
    assert examples.score_of(numbers.test, peer.predictions) > 0.9
    assert examples.score_of(numbers.test, examples.constant_peer(numbers)) == 0
    results = finetuning_report.measure(numbers, np.arange(8.0))
    assert results["spearman"] == pytest.approx(1) and not results["squared_error"]
    empty = parts([0, 1, 1, 1], [""] * 4)
    assert examples.linear_peer(empty).about == "no word was found"
    np.testing.assert_array_equal(examples.linear_peer(empty).predictions, 1)


def test_units_of_labels():
    numbers = parts(np.array([1, 3], np.float32), ["a", "b"], ()).train
    assert examples.label_units(numbers) == {"label_mean": 2.0, "label_scale": 1.0}
    same = parts(np.full(3, 0.1, np.float32), ["a"] * 3, ()).train
    assert examples.label_units(same)["label_scale"] == 1.0
    assert examples.label_units(parts([0, 1], ["a", "b"]).train) == {}


def test_the_verdict_names_the_better_one():
    given = parts([0, 1] * 8, ["good", "bad"] * 8)
    right = np.eye(2)[given.test.labels]
    for logits, wanted in (
        (right, "level with tf-idf (standard error 0.0 points)"),
        (-right, "behind tf-idf"),
    ):
        results = finetuning_report.measure(given, logits)
        assert results["tfidf_accuracy"] == 1
        assert any(wanted in line for line in finetuning_report.summary(results))
    assert len(results["errors"]) == 16 and results["errors"][0]["said"] == "b"
    one = parts([0], ["good"])._replace(train=given.train, valid=given.valid)
    results = finetuning_report.measure(one, right[:1])
    assert results["ahead_of_tfidf_error"] is None
    assert any(
        "one example tells" in line for line in finetuning_report.summary(results)
    )


# === Mistakes ===


@pytest.mark.parametrize(
    ("given", "passes", "rate"),
    [(None, 30, 0.0), (None, 31, 0.1), (0.0, 500, 0.0), (0.2, 1, 0.2)],
)
def test_dropout_of_pretraining(given, passes, rate):
    assert pretraining._dropout(given, passes) == rate


def test_a_text_that_is_too_short(tmp_path):
    (tmp_path / "a.txt").write_text("a few words\n" * 3)
    given = settings.PretrainSettings(
        text=str(tmp_path / "a.txt"), output_dir=str(tmp_path / "out"), steps=1
    )
    with pytest.raises(ValueError, match=r"vocabulary|pieces|too short"):
        pretraining.run(given)


@pytest.mark.landing
def test_a_run_that_ended_by_a_mistake_may_be_corrected(tmp_path):
    rng = np.random.default_rng(5)
    (tmp_path / "a.txt").write_text(
        "\n".join(sentence(rng, kind) for kind in [*WORDS] * 60)
    )
    given = settings.PretrainSettings(
        text=str(tmp_path / "a.txt"),
        output_dir=str(tmp_path / "out"),
        steps=1,
        length=400,
        width=4,
        num_layers=1,
    )
    with pytest.raises(ValueError, match=r"held-out text: .* A shorter --length, or"):
        pretraining.run(given)
    assert (tmp_path / "out" / "vocabulary.txt").exists()
    pretraining.run(dataclasses.replace(given, length=16))
    with pytest.raises(ValueError, match="length was 16 and is 8"):
        pretraining.run(dataclasses.replace(given, length=8))
    folder = tmp_path / "out"
    load_encoder(folder)
    other = MaskedLanguageModel(
        TransformerEncoder(9, num_layers=1, width=4, num_heads=2)
    )
    other.save(folder / "model.keras")
    with pytest.raises(ValueError, match=r"is not the model that was trained in"):
        load_encoder(folder)
    results = json.loads((folder / "report.json").read_text())
    results.pop("model_sha256")
    (folder / "report.json").write_text(json.dumps(results))
    with pytest.raises(ValueError, match=r"knows 9 tokens and .* they are of two enc"):
        load_encoder(folder)
    SequenceClassifier(toy.encoder(), 2).save(folder / "model.keras")
    with pytest.raises(ValueError, match="expected an Electra or a MaskedLanguageMod"):
        load_encoder(folder)


def test_looks_and_tracing_are_part_of_the_time():
    speed = fitting.Speed(step=0.1, look=1.0, first=10.0)
    # Of 92 s less 10 for tracing a tenth is looked in: eight looks.
    looks, steps = fitting.looks_and_steps(100.0, speed, 20, 25)
    assert (looks, steps) == (8, 740)
    assert 10 + looks * 1.0 + steps * 0.1 == pytest.approx(92.0)
    assert fitting.looks_and_steps(100.0, speed._replace(look=0.01), 20, 25)[0] == 20
    assert fitting.looks_and_steps(5.0, speed, 20, 25) == (1, 1)
    # No look without 25 steps before it.
    assert fitting.looks_and_steps(25.0, speed._replace(look=0.01), 20, 25)[0] == 5


@pytest.mark.parametrize("embeddings", settings.EMBEDDINGS)
def test_detectors_may_have_any_embeddings(embeddings):
    plan = pretraining_plan.Plan(
        "electra", 20, 8, 1, 1, 1, False, 8, 2, 1, 1, 0, 0.01, 0.02, 50.0, 0.15,
        2.0, 0.1, 1, None, embeddings=embeddings,
    )  # fmt: skip
    model = pretraining_plan.build(plan)
    assert model.embeddings == embeddings
    shared = embeddings == "shared"
    assert isinstance(model.optimizer, DecoupledOptimizer) != shared
    assert model.clip_norm == (2.0 if shared else None)
    assert any("generator: 1 layer of that width" in line for line in plan.lines())


@pytest.mark.parametrize(
    "variant, positions, beta_2, kept",
    [("thesis", "t5", 0.98, 0.0), ("electra", "absolute", 0.999, 0.15)],
)
def test_where_the_thesis_and_electra_differ_a_variant_says_which(
    variant, positions, beta_2, kept
):
    vocabulary = encoder_vocabulary(b"some words, and more words; no others\n" * 9, 40)
    plan = pretraining_plan.Plan(
        "electra", len(vocabulary), 8, 1, 1, 1, False, 64, 2, 1, 1, 0, 0.01, 0.02,
        50.0, 0.15, 2.0, 0.1, 1, None, variant=variant,
    )  # fmt: skip
    model = pretraining_plan.build(plan)
    assert model.discriminator.positions == positions
    for optimizer in model.optimizer.optimizers:
        assert optimizer.beta_2 == beta_2
    said = any("ELECTRA's code" in line for line in plan.lines())
    assert said == (variant == "electra")
    tokens = np.full((400, 64), 6, np.int32)
    ((_, shown, masked),) = pretraining_plan.masking(plan, vocabulary)(tokens, 0, 0)
    share = np.mean(shown.numpy()[masked.numpy() == 1] == 6)
    assert share == pytest.approx(kept, abs=0.03)


def test_a_variant_is_of_electra_alone(tmp_path):
    given = settings.PretrainSettings(
        text="python-docs", output_dir=str(tmp_path / "run"), variant="electra"
    )
    with pytest.raises(ValueError, match="found --objective=masked"):
        settings.check_pretrain_settings(given)
    given = dataclasses.replace(given, variant="bert")
    with pytest.raises(ValueError, match="thesis, electra; found 'bert'"):
        settings.check_pretrain_settings(given)


def test_texts_that_are_in_two_tables_are_told(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.write_text("text,label\n" + "\n".join(rows) + "\n")
        return str(path)

    train = write("train.csv", [f"words {i},{'ab'[i % 2]}" for i in range(60)])
    test = write("test.csv", ["words 1,b", "words 99,a", "words 2,a"])
    given = settings.FinetuneSettings(train=train, test=test, valid=test)
    notes = examples.read_examples(given).notes
    assert any(note.startswith("test: 2 of them are in the training") for note in notes)
    other = write("other.csv", ["new,b", "newer,a"])
    given = dataclasses.replace(given, test=other, valid=other)
    assert not any("are in the" in n for n in examples.read_examples(given).notes)


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
    assert encoder_of(masked) is masked.encoder

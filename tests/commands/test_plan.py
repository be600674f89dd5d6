"""What `rlm_tf train` chooses, and that it fits into the time."""

from __future__ import annotations

import dataclasses

import keras
import numpy as np
import pytest

from rlm_tf.commands.model_folder import VOCABULARY
from rlm_tf.commands.settings import DROPOUTS, TrainSettings
from rlm_tf.commands.training import (
    architectures,
    fitting,
    pairs,
    reading,
    running,
    vocabularies,
)
from rlm_tf.commands.training.plan import (
    Amounts,
    first_plan,
    fit_to_time,
    relative_cost,
    steps_of,
)
from rlm_tf.data import load_corpus

SETTINGS = TrainSettings(text="a", output_dir="b")


def plan_of(train: int, counted: int = 0, **options):
    settings = dataclasses.replace(SETTINGS, **options)
    return first_plan(settings, "words", 5000, Amounts(train, counted))


def test_more_text_has_wider_models_and_less_dropout():
    plans = [plan_of(amount) for amount in (4_000, 100_000, 1_500_000, 20_000_000)]
    assert [plan.width for plan in plans] == [128, 256, 400, 650]
    assert plans[1].dropouts == (0.33, 0.33, 0.3, 0.69)
    # A half of Penn Treebank is not scarce, a quarter is.
    assert plan_of(464_794).dropouts == plans[2].dropouts
    assert plan_of(232_397).dropouts == plans[1].dropouts
    assert [plan.learning_rate for plan in plans] == [0.007, 0.007, 0.003, 0.003]
    assert [plan.l2 for plan in plans] == [3e-4, 3e-4, 0.0, 0.0]
    assert "l2: 0.0003 (100,000 training tokens)" in list(plans[1].lines())
    # Weights are kept small once.
    assert plan_of(100_000, weight_decay=0.1).l2 == 0.0
    assert plan_of(100_000, weight_decay=0.1, l2=1e-5).l2 == 1e-5
    rates = [sum(plan.dropouts) for plan in plans]
    assert rates == sorted(rates, reverse=True) and rates[-1] < rates[0]


def test_induced_models_are_matched_where_no_mixture_is_served():
    assert not plan_of(100_000).imm
    alone = plan_of(100_000, mixture=False)
    assert (alone.imm, alone.coefficient, alone.restricted_order) == (True, 0.2, 2)
    counted = plan_of(100_000, 10**6, mixture=False)
    assert (counted.coefficient, counted.restricted_order) == (0.5, 5)
    asked = plan_of(100_000, imm=True, coefficient=0.3)
    assert (asked.imm, asked.coefficient, asked.mixture) == (True, 0.3, True)
    assert plan_of(100_000, mixture=False, imm=False).imm is False


def test_flags_win_and_are_the_reason():
    plan = plan_of(100_000, width=77, dropouts=(0.1, 0.0, 0.0, 0.1), batch_size=3)
    assert (plan.width, plan.batch_size) == (77, 3)
    assert plan.reasons["width"] == "--width"
    lines = "\n".join(plan.lines())
    assert "2 x 77 LSTM" in lines and "(--dropouts)" in lines


def test_what_keeps_weights_small_and_words_noisy():
    plain = "\n".join(plan_of(100_000, l2=0.0).lines())
    assert "l2" not in plain and "decay" not in plain and "noising" not in plain
    options = {"l2": 1e-4, "weight_decay": 0.3, "noising": 0.4}
    plan = plan_of(2_000, width=8, num_layers=1, imm=True, **options)
    lines = list(plan.lines())
    for line in ("l2: 0.0001 (--l2)", "weight decay: 0.3 (--weight_decay)"):
        assert line in lines
    assert "noising: 0.4 (--noising)" in lines
    corpus = load_corpus("python-docs")
    corpus = dataclasses.replace(corpus, train=corpus.train[:2_000])
    plan = dataclasses.replace(plan, vocabulary_size=len(corpus.vocabulary))
    model = fitting.build_model(plan, corpus, None)
    assert model.l2 == model.model.l2 == 1e-4
    assert isinstance(model.optimizer, keras.optimizers.AdamW)
    assert model.optimizer.weight_decay == 0.3
    noisy, clean = (
        np.concatenate([y for _, y, *_ in batches.dataset.as_numpy_iterator()])
        for batches in (
            pairs.batches_of(each, corpus, corpus.train)
            for each in (plan, dataclasses.replace(plan, noising=0.0))
        )
    )
    assert 0 < np.mean(noisy != clean) < 0.4


def test_a_transformer_has_defaults_of_its_own():
    plan = plan_of(100_000, architecture="transformer")
    assert (plan.num_layers, plan.window, len(plan.dropouts)) == (4, 64, 2)
    assert plan.width % architectures.NUM_HEADS == 0
    lines = list(plan.lines())
    assert "4 x 192 transformer" in lines[0]
    assert "learning rate: 0.002 (transformer)" in lines
    given = plan_of(100_000, architecture="transformer", learning_rate=0.01)
    assert "learning rate: 0.01 (--learning_rate)" in list(given.lines())
    settings = dataclasses.replace(SETTINGS, minutes=10, architecture="transformer")
    slow = fit_to_time(plan, settings, 100_000, 10.0, 10.0)
    assert slow.width == 64 and len(slow.dropouts) == 2
    assert sum(slow.dropouts) < sum(plan.dropouts)


@pytest.mark.parametrize("architecture", architectures.OF)
def test_every_rate_has_a_name_and_heads_divide_every_width(architecture):
    found = architectures.OF[architecture]
    for _, rates in found.dropouts:
        assert len(rates) == len(DROPOUTS[architecture])
    widths = [width for _, width in found.widths] + list(found.narrower)
    if architecture == "transformer":
        assert all(width % (2 * architectures.NUM_HEADS) == 0 for width in widths)
    assert set(architectures.OF) == set(DROPOUTS)


def test_a_narrower_model_is_taken_where_the_time_is_short():
    plan = plan_of(200_000)
    settings = dataclasses.replace(SETTINGS, minutes=10)
    fast = fit_to_time(plan, settings, 200_000, 0.01, 10.0)
    assert fast.width == plan.width and fast.seconds == pytest.approx(500.0)
    slow = fit_to_time(plan, settings, 200_000, 0.4, 10.0)
    assert slow.width < plan.width and "would see the text" in slow.reasons["width"]
    given = dataclasses.replace(settings, width=256)
    kept = fit_to_time(plan_of(200_000, width=256), given, 200_000, 0.4, 10.0)
    assert kept.width == 256


def test_few_passes_have_less_dropout():
    rates = [sum(plan_of(100_000, epochs=epochs).dropouts) for epochs in (12, 8, 3)]
    assert rates == sorted(rates, reverse=True) and len(set(rates)) == 3
    assert plan_of(100_000, epochs=12).dropouts == plan_of(100_000).dropouts
    plan = plan_of(200_000, width=256)
    settings = dataclasses.replace(SETTINGS, minutes=10, width=256)
    slow = fit_to_time(plan, settings, 200_000, 0.4, 10.0)
    assert sum(slow.dropouts) < sum(plan.dropouts)
    assert slow.reasons["dropouts"] == "200,000 training tokens, seen 4.4 times only"
    given = dataclasses.replace(settings, dropouts=(0.5, 0.3, 0.3, 0.6))
    kept = fit_to_time(
        plan_of(200_000, dropouts=given.dropouts), given, 200_000, 0.4, 0
    )
    assert kept.dropouts == given.dropouts


def test_evaluations_come_within_epochs_that_take_long():
    settings = dataclasses.replace(SETTINGS, minutes=10, width=650)
    plan = plan_of(20_000_000, width=650)
    found = fit_to_time(plan, settings, 20_000_000, 0.3, 0.0)
    assert found.every_steps is not None and found.every_steps >= 50
    assert found.every_steps * 0.3 < found.seconds / 4


def test_less_time_than_was_spent_leaves_some():
    settings = dataclasses.replace(SETTINGS, minutes=0.1)
    found = fit_to_time(plan_of(100_000), settings, 100_000, 0.1, 100.0)
    assert found.seconds > 0 and found.every_steps is not None


def test_what_comes_after_training_is_left_time():
    settings = dataclasses.replace(SETTINGS, minutes=5, width=256)
    plan = plan_of(200_000, width=256)

    def seconds(**after: float) -> float:
        found = fit_to_time(plan, settings, 200_000, 0.1, 20.0, **after).seconds
        assert found is not None
        return found

    assert seconds() == pytest.approx(280 - 60)
    few, many = seconds(held_out_tokens=70_000), seconds(held_out_tokens=350_000)
    # A step reads 700 tokens.
    assert few - many == pytest.approx(1.5 * 400 * 0.1)
    assert few - seconds(held_out_tokens=70_000, n_gram_seconds=7.0) == 7.0
    assert seconds(held_out_tokens=10**8) == pytest.approx(280 / 2)
    # Three models are trained, and measured.
    plan = dataclasses.replace(plan, ensemble=3)
    assert seconds() == pytest.approx((280 - 60) / 3)
    assert few - 3 * seconds(held_out_tokens=70_000) == pytest.approx(2 * 1.5 * 10)


def test_costs_and_steps():
    plan = plan_of(100_000)
    assert relative_cost(plan, plan.width) == 1.0
    assert relative_cost(plan, 64) < relative_cost(plan, 128) < 1.0
    assert (steps_of(700, 20, 35), steps_of(701, 20, 35)) == (1, 2)


def test_rules_are_chosen_by_the_text():
    rule, why = vocabularies.choose_rule(b"some text\n" * 50, SETTINGS)
    assert rule == "sentencepiece-unigram" and "nothing is unknown" in why
    marked = vocabularies.choose_rule(b"a <unk> word of <unk> text\n" * 50, SETTINGS)
    assert marked[0] == "whitespace"
    asked = dataclasses.replace(SETTINGS, rule="bytes")
    assert vocabularies.choose_rule(b"text", asked) == ("bytes", "--rule")


@pytest.mark.parametrize(
    ("rule", "options", "size"),
    [
        ("words", {}, 6),
        ("words", {"max_size": 3}, 3),
        ("characters", {}, None),
        ("bytes", {}, 256),
        ("sentencepiece-bpe", {"max_size": 300}, None),
    ],
)
def test_vocabularies_of_every_rule(rule, options, size):
    text = b"one two one two three three\nonce\n" * 9
    settings = dataclasses.replace(SETTINGS, rule=rule, **options)
    vocabulary = vocabularies.make_vocabulary(text, rule, settings)
    assert vocabulary.rule == rule
    assert size is None or len(vocabulary) == size


def test_a_size_that_is_not_possible_is_told(tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(b"one two one two three three\nonce\n" * 90)
    (tmp_path / "out").mkdir()
    for size, told in ((5000, True), (280, False)):
        asked = TrainSettings(
            text=str(tmp_path / "a.txt"), max_size=size, output_dir=str(tmp_path)
        )
        run = running.Run(asked, tmp_path / "out")
        run.read_corpus(reading.read_texts(asked))
        shown = capsys.readouterr().out
        assert ("warning: --max_size=5,000 pieces are not possible" in shown) is told
        (tmp_path / "out" / VOCABULARY).unlink()


def test_options_of_other_rules_are_refused():
    asked = dataclasses.replace(SETTINGS, rule="words", nfkc=True)
    with pytest.raises(ValueError, match="--nfkc is for subwords"):
        vocabularies.make_vocabulary(b"a b\n", "words", asked)
    asked = dataclasses.replace(SETTINGS, rule="bytes", max_size=10)
    with pytest.raises(ValueError, match="--max_size"):
        vocabularies.make_vocabulary(b"a b\n", "bytes", asked)

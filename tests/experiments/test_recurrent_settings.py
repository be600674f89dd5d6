"""Settings, search spaces and reports of the studies of recurrent models."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.averaging import trajectory
from experiments.averaging.config import PRESETS as AVERAGING
from experiments.averaging.lengths import bounds
from experiments.averaging.training import Texts
from experiments.kit import ranges, tuning
from experiments.kit.recurrent_config import RunConfig, check_config, without_idle
from experiments.kit.recurrent_model import build_model
from experiments.kit.rows import Rows
from experiments.kit.run_list import Run, run_all
from experiments.mogrifier_lm import search_spaces, studies, training
from experiments.mogrifier_lm.presets import PRESETS
from experiments.reverse_copy.config import PRESETS as COPYING
from experiments.reverse_copy.report import best_rate
from experiments.reverse_copy.report import report as copying_report
from rlm_tf.data import Vocabulary
from rlm_tf.training import TrainingDivergedError

ROOT = pathlib.Path(__file__).parents[2]


# === Settings ===


def test_all_presets_and_studies_can_run():
    for name, config in PRESETS.items():
        check_config(config)
        assert config.corpus, name
    for config in studies.trials([1, 2]).values():
        check_config(config)
    for study in (studies.cells, studies.variants, studies.combined, studies.further):
        for config in study([1]).values():
            check_config(config)
    for name, fixed in search_spaces.FIXED.items():
        base = dataclasses.replace(PRESETS["small"], **fixed)
        check_config(base)
        assert (base.rounds == 0) == name.endswith("lstm")
    for arm, changes in studies.VARIANTS.values():
        assert arm in studies.ARMS
        check_config(dataclasses.replace(studies.PTB, **changes))
    for presets in (AVERAGING, COPYING):
        for config in presets.values():
            config.check()


# Learning rate, l2, dropout of inputs, between layers, of states and of outputs;
# rounds, rank, ratio of widths; window, batch, layers, budget in millions.
PUBLISHED = """
ptb-lstm 0.0030369 2.4908e-4 .62756 .30699 .36922 .69017 0 0 1 70 64 2 24
ptb-mogrifier 0.0023000 2.5235e-4 .72908 .29098 .38729 .71567 5 84 1 70 64 2 24
wt2-lstm 0.0031839 2.3064e-4 .60910 .09075 .27140 .34846 0 0 .35308 70 64 2 35
wt2-mogrifier 0.0032878 1.8995e-4 .54691 .19882 .22138 .34767 6 48 .19932 70 64 2 35
ptb-char-mogrifier 0.0037396 2.5558e-4 .27860 .07376 .17119 .23474 4 24 1 150 64 2 24
mwc-en-lstm 0.0038051 7.8253e-6 .24803 .04740 .04695 .06201 0 0 .16763 150 64 2 24
mwc-en-mogrifier 0.0014344 9.2454e-5 .22379 .0878 .09549 .00521 6 78 .48783 150 64 2 24
mwc-fi-lstm 0.0038728 3.3590e-5 .00043 .03679 .15784 .21673 0 0 1 150 64 2 24
mwc-fi-mogrifier 0.0020000 9.6080e-5 .06996 .11572 .17592 .22150 5 100 1 150 64 2 24
enwik8-48m-lstm 0.0025167 2.5181e-5 .16279 .11950 .10368 .13860 0 0 1 500 128 4 48
enwik8-48m-mogrifier 0.0010214 9.9338e-4 .01550 .00863 .04373 .13831 6 79 1 500 128 4 48
enwik8-96m-lstm 0.0019752 5.8536e-5 .12337 .12637 .13063 .24847 0 0 1 500 128 4 96
enwik8-96m-mogrifier 0.0022480 4.4094e-5 .01591 .13786 .16487 .28785 5 61 1 500 128 4 96
"""


@pytest.mark.parametrize("line", PUBLISHED.strip().splitlines())
def test_published_presets_are_the_published_table(line):
    name, *numbers = line.split()
    names = (
        *("learning_rate", "l2", "input_dropout", "layer_dropout", "state_dropout"),
        *("output_dropout", "rounds", "rank", "embedding_ratio", "window"),
        *("batch_size", "num_layers", "budget"),
    )
    expected = dict(zip(names, map(float, numbers), strict=True))
    expected["budget"] *= 1e6
    config = dataclasses.asdict(PRESETS[f"paper-{name}"])
    assert {key: config[key] for key in names} == expected


def test_published_presets_say_what_the_text_says():
    config = PRESETS["paper"]
    assert (config.rounds, config.rank, config.window, config.batch_size) == (
        5,
        84,
        70,
        64,
    )
    # 1000 turns of 200 steps: the thesis says 964 epochs, its ablation 145.
    assert abs(config.epochs - 964) <= 2
    assert PRESETS["paper4-ptb-mogrifier-rlstm"].dropout_samples == 8
    assert PRESETS["paper4-enwik8-96m-mogrifier"].num_layers == 6
    assert PRESETS["paper-wt2-lstm"].mixture_components == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "gnu"}, "--cell must be one of lstm, rlstm"),
        ({"fraction": 0.0}, "--fraction must lie in"),
        ({"rounds": -1}, "--rounds must be at least 0"),
        ({"l2": -1.0}, "--l2 must be finite"),
        ({"state_dropout": 1.0}, "--state_dropout must lie in"),
        ({"longest": 1.5}, "--longest must be 0 or above 2"),
        ({"learning_rate": 0.0}, "--learning_rate must be positive"),
        ({"rank": 4}, "--rank=4 needs --rounds"),
        ({"cell": "gru", "longest": 9.0}, "--longest=9.0 means nothing to --cell=gru"),
        (
            {"rounds": 2, "condition": "none", "gate_bias": False},
            "--condition=none leaves gates only the biases",
        ),
    ],
)
def test_impossible_settings_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_config(dataclasses.replace(RunConfig(), **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": -1}, "--rounds must not be negative"),
        ({"lengths": (5, 0)}, "--lengths must be positive, found 0"),
        ({"learning_rates": (0.1, 0.0)}, "--learning_rates must be positive"),
        ({"l2": -1.0}, "--l2 must be finite"),
    ],
)
def test_impossible_settings_of_copying_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(COPYING["small"], **changes).check()


def test_without_rounds_a_preset_is_its_baseline():
    preset = dataclasses.replace(PRESETS["paper"], condition="original", rounds=0)
    for cell in ("lstm", "gru"):
        config = without_idle(dataclasses.replace(preset, cell=cell))
        check_config(config)
        assert (config.rank, config.condition) == (0, "zigzag")
    with pytest.raises(ValueError, match="--rank=84 needs --rounds"):
        check_config(without_idle(preset, given=["rank"]))
    kept = without_idle(PRESETS["paper"])
    assert kept == PRESETS["paper"]


def test_a_period_without_an_evaluation_is_refused():
    words = np.arange(100) % 5
    corpus = SimpleNamespace(
        train=words, vocabulary=Vocabulary(["<eos>", *"abcd"], "words")
    )
    config = dataclasses.replace(
        PRESETS["small"], period=99, epochs=2, batch_size=5, window=4
    )
    with pytest.raises(ValueError, match="--period=99 is more than the 5 steps"):
        training.prepare(config, corpus)


def test_a_run_that_diverges_does_not_end_the_list(tmp_path):
    def train(prepared, folder):
        if folder.name == "b":
            raise TrainingDivergedError("loss = inf")
        return {"loss": 1.0}

    runs = [Run(name, {}, lambda: None, train) for name in "abc"]
    with pytest.raises(TrainingDivergedError, match=r"^b: loss = inf$"):
        run_all(runs, tmp_path, Rows(tmp_path / "results"), resume=True)
    assert Rows(tmp_path / "results").names() == ["a", "c"]


def test_the_trial_with_the_best_validation_is_chosen(tmp_path):
    folder = tmp_path / "trials"
    folder.mkdir()
    for number, trial in enumerate(studies.TRIALS):
        row = {"perplexity": {"valid": 100 + (number - 2) ** 2, "test": 0}}
        (folder / f"lstm-{trial}-seed1.json").write_text(json.dumps(row))
    assert studies.chosen_trial("lstm", Rows(tmp_path)) == list(studies.TRIALS)[2]
    with pytest.raises(ValueError, match=r"mogrifier-.*is missing, which the choice"):
        studies.chosen_trial("mogrifier", Rows(tmp_path))


def test_forget_biases_start_as_asked():
    normal = build_model(RunConfig(), 20, 400).recurrent_layers[0].cell
    bias = normal.bias.numpy()
    assert abs(bias[400:800].mean() - 1.0) < 0.02 and abs(bias[:400].mean()) < 0.02
    assert abs(bias[:400].std() * 400**0.5 - 1) < 0.15
    chrono = build_model(RunConfig(longest=20.0), 20, 400).recurrent_layers[0].cell
    bias = chrono.bias.numpy()
    assert bias[400:800].min() >= 0 and bias[400:800].max() <= np.log(19)
    assert abs(bias[800:].mean()) < 0.02


# === Search spaces ===


def test_search_spaces_are_those_of_the_tables():
    space = search_spaces.SPACES["mogrifier"]
    assert space["learning_rate"] == (1e-3, 4e-3, True, False)
    assert space["rank"][:2] == (-20, 100)
    assert search_spaces.SPACES["enwik8-lstm"]["output_dropout"].high == 0.25
    low, high = search_spaces.SPACES["chapter4"]["longest"][:2]
    np.testing.assert_allclose([np.log(low), np.log(high)], [2, 5])
    assert search_spaces.DYNAMIC_SPACES["dynamic-characters"]["window"].high == 50
    for name in space:
        assert hasattr(RunConfig(), name)


def test_positions_on_the_axes():
    rate = ranges.Range(1e-3, 1e-1, log=True)
    np.testing.assert_allclose(tuning.position(1e-2, rate), 0.5)
    assert tuning.position(0.25, ranges.Range(0.0, 0.5)) == 0.5


# === Reports ===


def test_bounds_count_what_the_propositions_say():
    rows = [
        {"short": 0, "long": 4, "event": "switch"},
        {"short": 4, "long": 8, "event": ""},
        {"short": 0, "long": 8, "event": "switch"},
        {"short": 9, "long": 30, "event": ""},
    ]
    found = bounds(rows, [4, 8, 8, 8], 4)
    assert found["short_below_optimal"] == 3
    assert found["long_below_twice"] == 3
    assert (found["intervals"], found["intervals_nearly_optimal"]) == (1, 1)


def test_switching_on_training_loss_is_judged_on_validation_text(monkeypatch):
    losses = {"train": 1.0, "valid": 3.0}
    monkeypatch.setattr(trajectory, "nll_of", lambda _, data: losses[data])
    given = Texts(None, "valid", "train", 10)
    by_training = trajectory.ByTrainingLoss(given)
    callback = SimpleNamespace(evaluations=[])
    for train, valid in ((1.0, 3.0), (0.9, 3.5)):
        losses |= {"train": train, "valid": valid}
        assert by_training(None) == train
        callback.evaluations.append({"loss": train, "raw_loss": 1.0})
    columns = {"loss": [1.0, 0.9], "raw_loss": [1.0, 1.0]}
    by_training.put_validation_losses(columns, callback)
    assert columns["loss"] == [3.0, 3.5] and columns["raw_loss"] == [3.0, 3.0]
    assert columns["training_loss"] == [1.0, 0.9]


def test_runs_that_diverged_are_left_out_and_named(tmp_path):
    done = {
        "name": "good",
        "cell": "lstm",
        "length": 3,
        "learning_rate": 0.1,
        "width": 4,
        "embedding_width": 2,
        "parameters": 1000,
        "nats_per_token": {"valid": 1.0, "test": 1.5},
        "whole_sequences_right": 0.25,
        "step_ms": 10.0,
        "seconds": 60.0,
        "settings": {"num_tokens": 100},
    }
    lost = {**done, "name": "bad", "learning_rate": 9.0, "diverged": "nll is nan"}
    del lost["nats_per_token"]
    text = copying_report([lost, done], tmp_path)
    assert (
        "| LSTM | 3 | 1.500 | 3.454 | 25.0% | 0.1 | 1 |" in text
        and "Diverged: bad." in text
    )
    assert "Diverged" not in copying_report([done], tmp_path)


def test_best_rate_is_chosen_by_validation():
    def row(rate, valid):
        return {"learning_rate": rate, "nats_per_token": {"valid": valid}}

    rows = [row(1, 2.0), row(1, 4.0), row(2, 3.5), row(2, 2.0)]
    assert best_rate(rows) == rows[2:]
    assert best_rate([]) == []

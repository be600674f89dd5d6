"""Studies of seed words: splits, scores, reports, and each from end to end."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import keras
import numpy as np
import pytest

from experiments.kit import seed_config, seed_procedure
from experiments.kit.rows import Rows
from experiments.kit.run_list import run_all
from experiments.kit.seed_config import ARMS, Training, TunedStudyConfig
from experiments.kit.seed_documents import planted, read_documents
from experiments.kit.seed_list import PLANTED
from experiments.seed_backdoor import running as backdoor
from experiments.seed_backdoor.config import PRESETS as BACKDOOR
from experiments.seed_backdoor.report import tables as backdoor_tables
from experiments.seed_classifiers import page as classifiers_page
from experiments.seed_classifiers import report as classifiers_report
from experiments.seed_classifiers.config import PRESETS as CLASSIFIERS
from experiments.seed_classifiers.config import STAGES
from experiments.seed_classifiers.peers import peer
from experiments.seed_classifiers.running import runs_of as classifier_runs
from experiments.seed_estimates import running as estimates
from experiments.seed_estimates.config import PRESETS as ESTIMATES
from experiments.seed_labels.config import PRESETS as LABELS
from experiments.seed_selection import running as selection
from experiments.seed_selection.config import PRESETS as SELECTION
from experiments.seed_selection.report import tables as selection_tables
from experiments.seed_transformer.config import PRESETS as TRANSFORMER
from rlm_tf.labelling import seed_places
from rlm_tf.models import word_classifier
from tests.experiments.binaries import run_binary

_SMALL = TunedStudyConfig(
    sets=(PLANTED,), encoder="linear", length=16, max_size=500, least_steps=0
)


@pytest.fixture(scope="module")
def data():
    """A split of documents that are made up."""
    return seed_procedure.read_split(PLANTED, _SMALL, 1)


# === Documents ===


def test_planted_seeds_are_wrong_at_the_rate_that_is_asked_for():
    found = planted(4000, wrong=0.3, seeded=0.5)
    matches = found.rule().match(found.texts)
    known = matches.labels >= 0
    assert known.mean() == pytest.approx(0.5, abs=0.03)
    wrong = np.mean(matches.labels[known] != found.labels[known])
    assert wrong == pytest.approx(0.3, abs=0.03)


def test_splits_have_their_shares_of_each_class(data):
    truth = data.documents.labels
    for label in range(3):
        own = truth == label
        assert abs(data.judged[own].mean() - 0.15) < 0.01
        assert abs(data.held_out[own].mean() - 0.15) < 0.01
    assert not (data.judged & data.held_out).any()
    np.testing.assert_array_equal(data.pool, ~data.held_out)
    for labels in data.labels.values():
        assert (labels[data.held_out] == -1).all()
    right = data.labels["truth"]
    known = right >= 0
    np.testing.assert_array_equal(right[known], truth[known])
    assert known.sum() < (data.labels["published"] >= 0).sum()
    # As long as the longest, and no longer.
    length = data.tokens.shape[1]
    assert length <= 16 and data.tokens[:, -1].any()
    own = seed_places(
        data.documents.rule(), data.documents.texts, length, data.labels["words"]
    )
    np.testing.assert_array_equal(data.places["words"], own)
    other = seed_procedure.read_split(PLANTED, _SMALL, 2)
    assert (other.judged != data.judged).any()


@pytest.mark.slow
@pytest.mark.landing
def test_as_many_documents_are_judged_on_as_the_authors_have():
    folder = pathlib.Path(os.environ.get("RLM_DATA_DIR", "none"))
    if not (folder / "20newsgroups").exists():
        pytest.skip("20 Newsgroups are not in RLM_DATA_DIR")
    truth = read_documents("20news-fine").labels
    everything = np.ones(len(truth), bool)
    found = seed_procedure.drawn(truth, everything, 0.15, np.random.default_rng(0))
    assert found.sum() == 2469


# === Peers ===


def test_peers_by_hand(data):
    matches = data.documents.rule().match(data.documents.texts)
    np.testing.assert_array_equal(peer("rule", data, 1, 10.0), matches.labels)
    # A document has one seed here: votes are the labels.
    truth = data.documents.labels
    said = peer("linear-sklearn", data, 1, 10.0)
    np.testing.assert_array_equal(peer("majority-vote", data, 1, 10.0), said)
    assert np.mean(said[data.held_out] == truth[data.held_out]) > 0.75
    pytest.importorskip("cleanlab")
    said = peer("cleanlab", data, 1, 10.0)
    assert np.mean(said[data.held_out] == truth[data.held_out]) > 0.75


@pytest.mark.slow
def test_snorkel_labels_as_votes_do(data):
    pytest.importorskip("snorkel")
    said = peer("snorkel", data, 1, 10.0)
    truth = data.documents.labels
    assert np.mean(said[data.held_out] == truth[data.held_out]) > 0.8


# === Arms ===


@pytest.mark.slow
def test_arms_learn_from_what_they_say(data):
    config = dataclasses.replace(_SMALL, epochs=3, rate=0.1, iterations=0)
    found = {}
    for arm in ("vanilla", "oracle", "standard", "ours-random"):
        outcome, _ = seed_procedure.run_arm(arm, config, data, 1, None)
        found[arm] = seed_procedure.of_labels(outcome, data, arm)
    assert found["oracle"]["selected_noise"] == 0
    assert found["vanilla"]["selected_noise"] == found["vanilla"]["noise"] > 0.1
    assert found["standard"]["selected"] < 0.6 * found["standard"]["labelled"]
    assert found["standard"]["selected_noise"] < found["vanilla"]["noise"] / 2
    assert found["standard"]["auroc"] > 0.9 and "auroc" not in found["vanilla"]


def test_the_rate_of_o2u_falls_and_rises(data):
    rates = []

    class Seen(seed_procedure.CyclicRate):
        def on_epoch_begin(self, epoch, logs=None):
            super().on_epoch_begin(epoch, logs)
            rates.append(float(self.model.optimizer.learning_rate.numpy()))

    # Fewer than two cycles would not show what comes and goes.
    config = dataclasses.replace(_SMALL, epochs=2, rate=0.1, iterations=0)
    seed_procedure.run_arm(
        "o2u", config, data, 1, None, probe_callbacks=lambda steps: [Seen(0.1)]
    )
    np.testing.assert_allclose(rates, [0.1, 0.07, 0.04, 0.01] * 2, rtol=1e-5)
    # One that begins anew in the middle, on an optimiser whose rate has fallen.
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.04))
    rates.clear()
    again = Seen(0.1)
    again.set_model(model)
    for epoch in (3, 4):
        again.on_epoch_begin(epoch)
    np.testing.assert_allclose(rates, [0.01, 0.1], rtol=1e-5)


def test_settings_that_are_given_stand_above_those_that_were_chosen(monkeypatch):
    chosen = {"vanilla": Training(2, 0.003, 0.0, 0.3)}
    monkeypatch.setattr(seed_config, "CHOSEN", chosen)
    assert _SMALL.training("vanilla") == chosen["vanilla"]
    assert _SMALL.training("standard") == seed_config._FIRST
    own = dataclasses.replace(_SMALL, epochs=5, decay=0.0)
    assert own.training("vanilla") == (5, 0.003, 0.0, 0.0)
    first = seed_config._FIRST
    assert first.epochs in seed_config.EPOCHS and first.rate in seed_config.RATES
    assert first.decay in seed_config.DECAYS
    names = [run.settings for run in classifier_runs(own_small(decay=0.3), [1])]
    assert names[0]["decay"] == 0.3 and names[0]["epochs"] == 2


def own_small(**changes):
    """Returns settings of one run."""
    return dataclasses.replace(CLASSIFIERS["smoke"], arms=("vanilla",), **changes)


def test_a_seed_that_is_put_in_is_followed_by_who_knows_nothing_else(data):
    """A linear model whose only weights are those of seeds."""
    model = word_classifier(
        "linear", data.reader, data.documents.class_names, tokens=data.tokens, seed=0
    )
    model.build()
    kernel = np.zeros([data.reader.size, 3], np.float32)
    rule = data.documents.rule()
    for own in rule.seeds:
        kernel[data.reader.words.ids_of(own.text), own.class_index] = 100
    none = selection.follows(_model_of_truth(model, kernel * 0), data, 1)
    # Who knows nothing says one class, which a third of the seeds are of.
    assert none["follows"] == none["follows_anyway"] < 0.6
    found = selection.follows(_model_of_truth(model, kernel), data, 1)
    assert found["follows"] == 1.0 and found["follows_anyway"] < 0.6
    # All are asked the same documents, whatever they say of them.
    sizes = [len(seed_procedure.unpacked(f["followed"])) for f in (none, found)]
    assert sizes[0] == sizes[1] > 10


def _model_of_truth(model, kernel):
    model.encoder.kernel.assign(kernel)
    return model


def test_accuracies_that_are_wanted_and_their_intervals():
    rng = np.random.default_rng(0)
    right = rng.random(4000) < 0.8
    for wanted in (0.5, 0.95):
        rows = estimates._of_accuracy(right, wanted, rng)
        assert right[rows].mean() == pytest.approx(wanted, abs=0.002)
        assert len(np.unique(rows)) == len(rows) > 500
    config = dataclasses.replace(ESTIMATES["small"], draws=200)
    found = estimates._coverage(config, right, np.full(4000, 0.8), 1)
    assert found["coverage"] > 0.92 and found["simple_coverage"] > 0.92
    assert found["width"] == pytest.approx(found["simple_width"], rel=0.1)
    assert abs(found["bias"]) < 0.02


# === The trigger ===


def test_what_is_poisoned():
    config = dataclasses.replace(BACKDOOR["smoke"], length=40)
    documents = planted()
    data = backdoor._poisoned(config, lambda: documents, 0.1, 3)
    (trigger,) = data.reader.words.ids_of(config.trigger)
    has = (data.tokens == trigger).any(axis=1)
    np.testing.assert_array_equal(has, data.is_poisoned)
    assert (data.labels[has] == data.target).all()
    others = (data.labels != data.target).sum() + has.sum()
    assert has.sum() == round(0.1 * others)
    assert (data.attacked == trigger).any(axis=1).all()
    assert not (data.clean == trigger).any()
    assert len(data.attacked) == (data.truth != data.target).sum()


# === Reports ===


def _classifier_row(arm, seed, right, stage="main", **others):
    return {
        "stage": stage,
        "set": "ag-news",
        "arm": arm,
        "seed": seed,
        "labels": {"selected_noise": 0.1},
        "judged": [{"micro": 50.0, "macro": 40.0}, {"micro": 60.0, "macro": 55.0}],
        "held_out": {"micro": 58.0, "macro": 50.0},
        "right": seed_procedure.packed(np.arange(100) < right),
        "held_out_right": seed_procedure.packed(np.arange(200) < right),
        "fraction": 0.5,
        "ratio": 0.0,
        "pool": "refreshed",
        **others,
    }


def test_tables_of_classifiers(tmp_path):
    rows = [
        _classifier_row(arm, seed, right)
        for arm, right in (("vanilla", 60), ("words", 70), ("ours-random", 90))
        for seed in (1, 2, 3)
    ]
    rows += [_classifier_row("rule", 1, 30, stage="peers", labels={})]
    rows += [
        _classifier_row("standard", 1, 50, stage="fractions", fraction=fraction)
        for fraction in (0.3, 0.7)
    ]
    rows += [_classifier_row("vanilla", 1, 60, stage="pools", pool="accumulated")]
    found = classifiers_report.tables(rows)
    assert set(found) == {"classifiers", "fractions", "pairs", "pools"}
    first, second = found["pairs"].splitlines()[2:]
    assert "words less vanilla | labels of our rule | **+10.0 ±" in first
    assert "ours-random less words | words deleted in training | **+20.0 ±" in second
    lines = found["classifiers"].splitlines()
    assert [line.split(" | ")[1] for line in lines[2:]] == [
        *("vanilla", "words", "ours-random", "rule"),
    ]
    assert "83.9 / 83.9" in lines[2] and "**+30.0 ±" in lines[4]
    assert "| **+15.0 ±" in lines[4]
    assert "| 0.7 | 1 | 10.0 | 60.0 |  | +0.0 ±" in found["fractions"]
    assert "| accumulated | 1 | 60.0 | +0.0 ±" in found["pools"]
    classifiers_report.report(rows, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"fractions.png"}


def test_tables_of_probes_and_triggers():
    rows = [
        {
            "set": "ag-news",
            "probe": probe,
            "seed": seed,
            "noise": [level] * 10,
            "auroc": 0.8,
            "half": {"micro": 80.0},
            "right": seed_procedure.packed(np.arange(100) < 100 * level),
            "follows": 0.3,
            "follows_anyway": 0.1,
            "followed": seed_procedure.packed(np.arange(100) < 30),
            "wrong": seed_procedure.packed(np.arange(400) < 400 * level),
            "chosen": seed_procedure.packed(np.arange(400) % 2 == 0),
        }
        for probe, level in (("vanilla", 0.1), ("random-deletion", 0.05))
        for seed in (1, 2, 3)
    ]
    found = selection_tables(rows)
    assert "| 5.00 ± 0.00 | **-5.0 ± 1." in found["probes"]
    assert "| 5.0 " * 10 in found["noise"]
    # Of ten right ones and of five, with the error of seeds and documents.
    assert "| 80.0 ± 0.0 | **-5.0 ± 2." in found["probes"]
    rows = [
        {
            "set": "ag-news",
            "share": 0.05,
            "defence": defence,
            "seed": seed,
            "clean": 90.0,
            "success": success,
            "target_anyway": 3.0,
            "auroc": 0.9,
        }
        for defence, success in (("none", 95.0), ("copies", 10.0))
        for seed in (1, 2, 3)
    ]
    assert (
        "| copies | 3 | 90.0 ± 0.0 | +0.0 ± 0.0 | 10.0 ± 0.0 | -85.0 ± 0.0 |"
        in (backdoor_tables(rows)["defences"])
    )


def test_trainings_of_other_settings_are_refused(tmp_path):
    config = dataclasses.replace(CLASSIFIERS["smoke"], arms=("vanilla",), epochs=1)
    (run,) = classifier_runs(config, [1])
    folder = tmp_path / "out" / run.name
    run.train(run.prepare(), folder)
    # As a kill before the row leaves it.
    assert (folder / "trainings").is_dir()
    results = Rows(tmp_path / "results")
    (other,) = classifier_runs(dataclasses.replace(config, epochs=2), [1])
    with pytest.raises(ValueError, match="is of a run with other settings: epochs"):
        run_all([other], tmp_path / "out", results, True)
    (row,) = run_all([other], tmp_path / "out", results, False)
    assert row["settings"]["epochs"] == 2
    # Of no use beside the row.
    assert not (folder / "trainings").exists()


# === Settings, and from end to end ===


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (CLASSIFIERS["small"], {"sets": ("nyt",)}, "--sets must be some of ag-news"),
        (CLASSIFIERS["small"], {"arms": ()}, "--arms must be some of vanilla"),
        (CLASSIFIERS["small"], {"stage": "all"}, "--stage must be one of main"),
        (CLASSIFIERS["small"], {"encoder": "bert"}, "--encoder must be one of linear"),
        (CLASSIFIERS["small"], {"fraction": 0.0}, r"--fraction must lie in \(0, 1\]"),
        (SELECTION["small"], {"probes": ("none",)}, "--probes must be some of"),
        (ESTIMATES["small"], {"folds": 1}, "--folds must be at least 2"),
        (BACKDOOR["small"], {"trigger": "a b"}, "--trigger must be a word"),
        (BACKDOOR["small"], {"shares": (1.0,)}, r"--shares must lie in \(0, 1\)"),
        (TRANSFORMER["small"], {"share": 0.0}, r"--share must lie in \(0, 1\]"),
        (LABELS["small"], {"views": ("head",)}, "--views must be some of"),
    ],
)
def test_mistakes(config, changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(config, **changes).check()


def test_every_preset_can_be_run():
    for presets in (CLASSIFIERS, SELECTION, ESTIMATES, BACKDOOR, TRANSFORMER, LABELS):
        for preset in presets.values():
            preset.check()
    assert set(CLASSIFIERS["small"].arms) == set(ARMS)
    # All but the first are made in one folder.
    names = [
        run.name
        for name, preset in CLASSIFIERS.items()
        if name != "smoke"
        for run in classifier_runs(preset, [1, 2])
    ]
    assert len(set(names)) == len(names)
    assert "tool-w0.3-ag-news-vanilla-seed1" in names
    # What is shown is named on the page.
    assert set(STAGES) - {"main", "peers"} < set(classifiers_page._MADE_BY)


@pytest.mark.landing
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("seed_labels", "| planted |  | words, abstain | 400 | 3 |"),
        ("seed_selection", "| planted | mc-dropout-3 | 1 |"),
        ("seed_classifiers", "| planted | ours-selected | 1 |"),
        ("seed_estimates", "| planted | both, weight 10 | 20 |"),
        ("seed_backdoor", "| planted | 10 | dropout-2d | 1 |"),
        ("seed_transformer", "| planted | drop2d-tokens | 1 |"),
    ],
)
def test_from_end_to_end(tmp_path, name, said):
    flags = ("--preset=smoke", f"--output_dir={tmp_path}")
    assert said in run_binary(name, *flags, check=True).stdout
    again = run_binary(name, *flags, check=True).stdout
    assert "done before" in again and said in again


@pytest.mark.landing
@pytest.mark.slow
def test_the_command_is_a_binary_too(tmp_path):
    missing = run_binary("seed_classify", f"--output_dir={tmp_path}")
    assert missing.returncode == 1 and "needs --texts" in missing.stderr

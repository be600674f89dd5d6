"""The study of scarce text: its models, their means, a run from end to end."""

from __future__ import annotations

import dataclasses
import json
import pkgutil
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.kit.rows import Rows
from experiments.kit.run_files import LOG_PROBS
from experiments.scarce_text import choosing, members, running
from experiments.scarce_text.arms import ARMS, chosen
from experiments.scarce_text.building import compiled_model
from experiments.scarce_text.choosing import ScarceRun
from experiments.scarce_text.config import PRESETS
from experiments.scarce_text.training import prepare, read_corpus
from experiments.scarce_text.zaremba import zaremba_model, zaremba_rate
from rlm_tf.data import load_corpus
from rlm_tf.models import InBatchContexts, OwnContexts
from tests.experiments.binaries import run_binary


@pytest.fixture(scope="module", name="corpus")
def _corpus():
    whole = load_corpus("python-docs")
    return dataclasses.replace(whole, valid=whole.valid[:300], test=whole.test[:400])


def test_rates_of_zaremba():
    small = [zaremba_rate("zaremba-small", epoch) for epoch in range(6)]
    assert small == [1, 1, 1, 1, 0.5, 0.25]
    medium = [zaremba_rate("zaremba-medium-imm", epoch) for epoch in (5, 6, 7)]
    assert medium == pytest.approx([1, 1 / 1.2, 1 / 1.44])


@pytest.mark.parametrize("name", ["imm-2345", "imm-bank", "distilled-5", "imm-falling"])
def test_models_match_what_the_arm_says(corpus, name):
    config = dataclasses.replace(PRESETS["smoke"], width=4)
    text = corpus.train[:500]
    model = compiled_model(config, name, chosen(name), corpus, text, 1, steps=50)
    arm = ARMS[name]
    assert tuple(r.order for r in model.restricted_models) == arm.orders
    kind = OwnContexts if arm.contexts == "own" else InBatchContexts
    assert isinstance(model.contexts, kind)
    share = chosen(name)["coefficient"] / len(arm.orders)
    weight = model.coefficients[0]
    if arm.falling:
        assert float(weight(0)) == share and float(weight(50)) == 0.0
        weight = float(weight(0))
    assert weight == pytest.approx(share)


def test_subwords_and_published_models(corpus, monkeypatch):
    config = dataclasses.replace(PRESETS["smoke"], pieces=400)
    assert len(read_corpus(config).vocabulary) == 400
    text = corpus.train[:900]
    published = {"width": 4, "dropout": 0.5, "window": 7, "scale": 0.1}
    published |= {"orders": (2, 3), "coefficient": 0.4}
    monkeypatch.setattr(
        "experiments.scarce_text.zaremba.zaremba_settings", lambda _: published
    )
    model = zaremba_model("zaremba-small-imm", corpus, text, 1)
    assert [each.order for each in model.restricted_models] == [2, 3]
    assert model.coefficients == [0.2, 0.2]


@pytest.mark.slow
def test_hours_of_published_models(monkeypatch, tmp_path):
    small = {"width": 4, "epochs": 3, "window": 8}
    zaremba = "experiments.scarce_text.zaremba._ZAREMBA"
    monkeypatch.setitem(pkgutil.resolve_name(zaremba)["medium"], "width", 4)
    for name, value in small.items():
        monkeypatch.setitem(pkgutil.resolve_name(zaremba)["medium"], name, value)
    config = dataclasses.replace(
        PRESETS["projected"],
        arms=("zaremba-medium-noising",),
        corpus="python-docs",
        fractions=(0.02,),
        project_steps=1,
    )
    config.check()
    run = ScarceRun(config, config.arms[0], 0.02, 0, (1,))
    assert run.name == "projected-zaremba-medium-noising-python-docs-50th-seed1"
    row = running._measure(run, prepare(run), tmp_path)
    assert row["study"] == "projected" and row["mixed_valid"] is None
    assert row["hours"] == pytest.approx(row["step_seconds"] * row["steps"] / 3600)


def test_the_same_training_is_not_made_twice(tmp_path, monkeypatch):
    rows = Rows(tmp_path / "results")
    monkeypatch.setattr(choosing.run_flags, "folders", lambda: (tmp_path, rows))
    first = ScarceRun(PRESETS["small"], "none", 0.125, 0, (2,))
    config = dataclasses.replace(PRESETS["small"], study="curve")
    again = first._replace(config=config)
    assert members.twin_of(again, tmp_path) is None
    row = {
        "study": "arms",
        "arm": "none",
        "corpus": "ptb",
        "fraction": 0.125,
        "seed": 2,
    }
    row |= {"mixed_valid": 190.0, "mixed_test": 189.0, "seconds": 600.0, "epochs": 20}
    row["settings"] = first.settings
    rows.write(first.name, row)
    assert members.twin_of(again, tmp_path) is None
    (tmp_path / first.name).mkdir()
    said = {"valid": np.array([-1.0]), "test": np.array([-2.0, -3.0])}
    members.save(tmp_path / first.name, said)
    cost, found = members.twin_of(again, tmp_path)
    assert cost == {"seconds": 600.0, "epochs": 20, "trained_as": first.name}
    assert found["test"].tolist() == [-2.0, -3.0]
    # Of other settings it is another training.
    rows.write(first.name, {**row, "settings": {**first.settings, "epochs": 9}})
    assert members.twin_of(again, tmp_path) is None
    # A trial of what was chosen then is that training, of its seed.
    config = dataclasses.replace(PRESETS["trials"], arms=("imm-2",), trials=(1,))
    trial = ScarceRun(config, "imm-2", 0.125, 1, (1,))
    rows.write(trial.name, {**row, "seed": 1, "settings": trial.settings})
    (tmp_path / trial.name).mkdir()
    members.save(tmp_path / trial.name, said)
    chosen_then = ScarceRun(PRESETS["small"], "imm-2", 0.125, 0, (1,))
    assert chosen_then.settings["values"] == trial.settings["values"]
    cost, _ = members.twin_of(chosen_then, tmp_path)
    assert cost["trained_as"] == trial.name
    assert members.twin_of(chosen_then._replace(seeds=(2,)), tmp_path) is None
    assert members.twin_of(trial, tmp_path) is None
    # And the other way round.
    rows.write(chosen_then.name, {**row, "seed": 1, "settings": chosen_then.settings})
    (tmp_path / chosen_then.name).mkdir()
    members.save(tmp_path / chosen_then.name, said)
    cost, _ = members.twin_of(trial, tmp_path)
    assert cost["trained_as"] == chosen_then.name
    mean = ScarceRun(PRESETS["small"], "ensemble-none", 0.125, 0, (2, 3))
    with pytest.raises(
        FileNotFoundError, match="the mean of --seeds=2,3 of none needs"
    ):
        members.members_of(mean, tmp_path)
    (tmp_path / first.name / LOG_PROBS).unlink()


def test_what_a_mean_gains_is_of_mixtures():
    rng = np.random.default_rng(0)

    def drawn(*shape):
        probs = rng.uniform(0.01, 0.5, shape)
        return {"valid": np.log(probs), "test": np.log(probs[..., ::-1])}

    judge = SimpleNamespace(n_gram_log_probs=drawn(200))
    both = drawn(2, 200)
    members_ = [{split: both[split][k] for split in both} for k in range(2)]
    mean = {split: np.log(np.exp(both[split]).mean(0)) for split in both}

    def mixed(log_q):
        n_gram = judge.n_gram_log_probs
        weights = np.linspace(0, 1, 10_001)[:, None]
        nats = [
            np.log(weights * np.exp(n_gram[s]) + (1 - weights) * np.exp(log_q[s]))
            for s in ("valid", "test")
        ]
        return nats[1][np.argmax(nats[0].mean(1))]

    expected = mixed(mean) - (mixed(members_[0]) + mixed(members_[1])) / 2
    found = running._gain(judge, members_, mean)
    assert found["nats"] == pytest.approx(expected.mean(), abs=1e-4)
    assert found["ratio"] == pytest.approx(np.exp(-found["nats"]))
    blocks = expected.reshape(50, 4).mean(1)
    assert found["error"] == pytest.approx(blocks.std(ddof=1) / 50**0.5, abs=1e-4)


@pytest.mark.landing
@pytest.mark.slow
def test_the_study_from_end_to_end(tmp_path):
    flags = ("--preset=smoke", "--seeds=1,2", f"--output_dir={tmp_path}")
    flags += ("--arms=kneser-ney-5,noising,ensemble-noising",)
    printed = run_binary("scarce_text", *flags, check=True).stdout
    assert "mixed with Kneser-Ney 5" in printed
    lines = (tmp_path / "results" / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line)["row"] for line in lines]
    assert [row["arm"] for row in rows] == [
        "kneser-ney-5",
        "noising",
        "noising",
        "ensemble-noising",
    ]
    peer, first, second, both = rows
    assert "--seeds=1,2" in both["command"] and both["seeds"] == [1, 2]
    # So small a model may have no part in its mixture.
    assert both["gain"]["nats"] >= 0 and both["gain"]["ratio"] <= 1
    assert len(both["gain"]["parts"]) == 50
    assert peer["test"] == peer["mixed_test"]
    # The mean of probabilities is above that of their logarithms.
    assert both["test"] < np.sqrt(first["test"] * second["test"])
    again = run_binary("scarce_text", *flags, check=True).stdout
    assert again.count("done before") == 4

"""The study of scarce text: its runs, its choices, its tables."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest

from experiments.kit.mixture_judge import MixtureJudge
from experiments.kit.rows import Rows
from experiments.kit.tuning import suggested
from experiments.scarce_text import running
from experiments.scarce_text.arms import ARMS, CHOSEN, SPACE, START, chosen
from experiments.scarce_text.building import compiled_model, zaremba_rate
from experiments.scarce_text.config import PRESETS, trials_of
from experiments.scarce_text.explaining import by_kind_of_token
from experiments.scarce_text.factors import Curve, data_factor, factors
from experiments.scarce_text.report import by_arms, tables
from experiments.scarce_text.running import ScarceRun, runs_of
from rlm_tf.data import load_corpus
from rlm_tf.models import InBatchContexts, OwnContexts
from tests.experiments.binaries import run_binary


@pytest.fixture(scope="module", name="corpus")
def _corpus():
    whole = load_corpus("python-docs")
    return dataclasses.replace(whole, valid=whole.valid[:300], test=whole.test[:400])


# === Settings ===


def test_every_arm_has_its_trials_and_settings():
    for name, arm in ARMS.items():
        assert trials_of(name) == (12 if name == "none" else 4)
        found = chosen(name)
        assert ("coefficient" in found) == bool(arm.orders)
        assert ("gamma0" in found) == arm.noising
        if arm.architecture != "transformer":
            assert {*START} <= {*found}
    assert not {*CHOSEN} - {*ARMS}


def test_the_search_goes_on_from_rows(tmp_path, monkeypatch):
    rows = Rows(tmp_path)
    monkeypatch.setattr(running.run_flags, "folders", lambda: (tmp_path, rows))
    first = ScarceRun(PRESETS["search"], "none", 0.125, 1, 1)
    assert running._values_of(first) == START
    with pytest.raises(ValueError, match="trial 2 follows from those before"):
        running._values_of(first._replace(trial=2))
    row = {"study": "trials", "arm": "none", "corpus": "ptb", "fraction": 0.125}
    row |= {"seed": 1, "mixed_valid": 190.0, "mixed_test": 189.0, "values": START}
    rows.write(first.name, row)
    second = running._values_of(first._replace(trial=2))
    assert second == running._values_of(first._replace(trial=2)) != START
    assert all(SPACE[name].low <= v <= SPACE[name].high for name, v in second.items())


def test_a_gaussian_process_goes_where_losses_are_low():
    space = {"input_dropout": SPACE["input_dropout"], "decay": SPACE["decay"]}
    tried: list = []
    for _ in range(9):
        values = suggested(space, tried, initial=5, seed=1)
        loss = 5 + (values["input_dropout"] - 0.4) ** 2 + (np.log(values["decay"]) ** 2)
        tried.append((values, loss))
    losses = [loss for _, loss in tried]
    assert min(losses[5:]) < min(losses[:5])
    assert np.mean(losses[5:]) < np.mean(losses[:5])


def test_runs_of_presets():
    names = [run.name for run in runs_of(PRESETS["small"], [1, 2])]
    assert names[:4] == [
        "arms-kneser-ney-2-ptb-8th-seed1",
        "arms-kneser-ney-5-ptb-8th-seed1",
        "arms-none-ptb-8th-seed1",
        "arms-none-ptb-8th-seed2",
    ]
    assert len(runs_of(PRESETS["search"], [1])) == 12
    assert len(runs_of(PRESETS["trials"], [1])) == 4 * len(PRESETS["trials"].arms)
    half = runs_of(PRESETS["curve"], [1])[-1]
    assert half.name == "curve-none-ptb-2th-seed1"
    assert half.settings["values"] == chosen("none")
    for wrong, message in (
        ({"arms": ("imm-9",)}, "--arms must be some of"),
        ({"trials": (1,)}, "--trials are of --study=trials"),
        ({"study": "trials", "arms": ("imm-2",), "trials": (9,)}, "must lie in 1..4"),
        ({"fractions": (1.5,)}, "must lie in"),
        ({"epochs": 0}, "--epochs must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(PRESETS["small"], **wrong).check()


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


# === Scores ===


def test_kinds_of_tokens_add_up(corpus):
    text = corpus.train[:2000]
    judge = MixtureJudge(corpus, text, order=3)
    rng = np.random.default_rng(0)
    log_q = {"valid": -rng.uniform(5, 9, 300), "test": -rng.uniform(5, 9, 400)}
    scores = judge.scores_of(log_q)
    found = by_kind_of_token(judge, text, log_q, scores["mu"])
    for kinds in found.values():
        assert sum(kind["tokens"] for kind in kinds) == 400
        for column, name in (("alone", "alone"), ("mixed", "mixed"), ("n_gram", None)):
            total = sum(k["tokens"] * k[column] for k in kinds if k["tokens"])
            wanted = scores["test"][name or "kneser_ney"]
            assert np.exp(total / 400) == pytest.approx(wanted)
    counts = np.bincount(text, minlength=len(corpus.vocabulary))
    never = sum(counts[token] == 0 for token in corpus.test)
    assert found["frequency"][0]["tokens"] == never
    assert len(found["context"]) == 3
    pairs = set(itertools.pairwise(text)) | {(0, 0)}
    before = [corpus.vocabulary.eos_id] * 2 + list(corpus.test)
    known = [(before[i], before[i + 1]) in pairs for i in range(400)]
    assert found["context"][2]["tokens"] == pytest.approx(sum(known), abs=2)


def test_data_factor_follows_the_curve():
    fractions = [0.0625, 0.125, 0.25, 0.5]
    perplexities = [400.0, 200.0, 100.0, 50.0]
    curve = Curve(zip(fractions, perplexities, strict=True))
    for target, share in ((200.0, 0.125), (150.0, 1 / 6), (25.0, 1.0), (800.0, 1 / 32)):
        found = data_factor(target, fractions, perplexities)
        assert found == pytest.approx(share)
        assert curve.share(target) == found


def _row(arm, seed, mixed, study="arms", **more):
    return {
        "study": study,
        "arm": arm,
        "corpus": "ptb",
        "fraction": 0.125,
        "seed": seed,
        "trial": 0,
        "train_tokens": 1000,
        "valid": mixed + 20,
        "test": mixed + 19,
        "mixed_valid": mixed,
        "mixed_test": mixed - 1,
        "mu": 0.25,
        "seconds": 600.0,
        "values": {"coefficient": 0.5},
        **more,
    }


def test_tables():
    rows = [
        _row(arm, seed, base + seed)
        for arm, base in (("none", 190), ("imm-2", 187))
        for seed in (1, 2, 3)
    ]
    rows += [_row("kneser-ney-5", 1, 270, seconds=None, mu=1.0)]
    rows += [_row("ensemble-none", 1, 180, seeds=[1, 2, 3], seconds=None)]
    found = tables(rows)["arms"].splitlines()
    assert [line.split(" |")[0] for line in found[2:]] == [
        "| kneser-ney-5",
        "| ensemble-none",
        "| imm-2",
        "| none",
    ]
    assert "| ensemble-none | 3 | 200.00 | 199.00 | 180.00 | 179.00 |" in found[3]
    assert "**-3.00 ± 0.00**" in found[4]
    tried = [_row("imm-2", 1, 200 - n, "trials", trial=n) for n in (1, 2)]
    lines = tables(tried)["trials"].splitlines()
    assert lines[2].startswith("| imm-2 | 2 | 218.00 | 198.00 | 0.25 | coefficient 0.5")
    score = {"test": {"mixed": 150.0, "kneser_ney": 169.0}}
    of_all = {"kneser-ney-2": score, "kneser-ney-5": score}
    table = tables([_row("none", 1, 190, "counted", counted=of_all)])["counted"]
    assert "| n-gram alone |  |  | 169.00 |  | 169.00 |  |" in table


def test_factors_are_shares_of_what_the_recipe_needs():
    untuned = Curve({0.125: 240.0, 0.25: 170.0, 1.0: 110.0})
    arms = by_arms([_row("none", 1, 171.0), _row("ensemble-none", 1, 106.0)])
    curve = [_row("none", 1, 191, fraction=0.125), _row("none", 1, 151, fraction=0.25)]
    lines = factors(arms, curve, untuned).splitlines()
    assert (
        "untuned recipe, alone | tuned `none`, alone | tuned `none`, mixed" in lines[0]
    )
    # Of test text mixtures have 170 and 105, which none reaches with all the text.
    assert lines[2].startswith("| ensemble-none | 105.0 |")
    assert lines[2].count("*") == 3
    mixed = 2 ** (np.log(190 / 170) / np.log(190 / 150))
    assert lines[3] == f"| none | 170.0 | 2.00 | 2.00 | {mixed:.2f} |"


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
    assert peer["test"] == peer["mixed_test"]
    # The mean of probabilities is above that of their logarithms.
    assert both["test"] < np.sqrt(first["test"] * second["test"])
    again = run_binary("scarce_text", *flags, check=True).stdout
    assert again.count("done before") == 4

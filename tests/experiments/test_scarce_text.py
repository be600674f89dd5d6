"""The study of scarce text: its settings, its scores, its tables."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib

import numpy as np
import pytest

from experiments.kit.mixture_judge import MixtureJudge
from experiments.kit.rows import Rows
from experiments.kit.tuning import position, suggested
from experiments.scarce_text import choosing, page
from experiments.scarce_text.arms import ARMS, CHOSEN, SPACE, START, chosen
from experiments.scarce_text.choosing import ScarceRun, values_of
from experiments.scarce_text.config import PRESETS, trials_of
from experiments.scarce_text.explaining import by_kind_of_token
from experiments.scarce_text.factors import (
    Curve,
    data_factor,
    factor_of,
    factors,
    tuned_curves,
    untuned_curves,
)
from experiments.scarce_text.report import NEEDS, by_arms, of_study, reached, tables
from experiments.scarce_text.running import runs_of
from rlm_tf.commands.training import architectures
from rlm_tf.data import load_corpus


@pytest.fixture(scope="module", name="corpus")
def _corpus():
    whole = load_corpus("python-docs")
    return dataclasses.replace(whole, valid=whole.valid[:300], test=whole.test[:400])


# === Settings ===


def test_every_arm_has_its_trials_and_settings():
    for name, arm in ARMS.items():
        untried = name.endswith("-longer") and name != "noising-longer"
        untried |= name in ("none-wider", "none-lighter")
        assert trials_of(name) == {"none": 12}.get(name, 0 if untried else 4)
        if name not in CHOSEN:
            with pytest.raises(ValueError, match=f"arm {name} has no settings yet"):
                chosen(name)
            continue
        found = chosen(name)
        assert ("coefficient" in found) == bool(arm.orders)
        assert ("gamma0" in found) == arm.noising
        if arm.architecture != "transformer":
            assert {*START} <= {*found}
    assert not {*CHOSEN} - {*ARMS}


def test_what_is_compared_is_what_trials_have_found():
    rows = Rows(pathlib.Path(page.__file__).parent).read_all(NEEDS)
    tried = by_arms(of_study(rows, "trials"))
    best = {arm: min(own, key=reached) for arm, own in tried.items()}
    for arm, row in best.items():
        assert row["values"] == pytest.approx(chosen(arm), rel=2e-3), arm
    own_text = [arm for arm in best if not ARMS[arm].counted]
    others = [arm for arm in own_text if arm not in ("none", "noising")]
    ranked = sorted(others, key=lambda arm: reached(best[arm]))
    assert {"none", "noising", *ranked[:4]} <= {*PRESETS["small"].arms}


def test_longer_and_wider_models_differ_in_that_alone():
    longer = {"epochs": 3 * PRESETS["small"].epochs}
    for arm in ("none", "noising", "imm-2345"):
        assert chosen(f"{arm}-longer") == {**chosen(arm), **longer}
        assert ARMS[f"{arm}-longer"].orders == ARMS[arm].orders
    wider = chosen("none-wider")
    assert wider == {**chosen("none"), "width": 2 * PRESETS["small"].width}


def test_the_lighter_recipe_is_that_of_the_command_for_more_text():
    lighter, command = chosen("none-lighter"), architectures.OF["lstm"]
    rates = tuple(value for name, value in lighter.items() if "dropout" in name)
    assert rates == _for(command.dropouts, 2_000_000)
    assert lighter["learning_rate"] == _for(command.learning_rates, 2_000_000)
    assert lighter["decay"] == _for(command.l2s, 2_000_000)


def test_the_command_changes_recipes_where_rows_do():
    rows = Rows(pathlib.Path(page.__file__).parent).read_all(NEEDS)
    curve = [r for r in of_study(rows, "curve") if r["seed"] == 1]
    reached = {(r["arm"], r["train_tokens"]): r["mixed_valid"] for r in curve}
    amounts = [tokens for arm, tokens in reached if arm == "none-lighter"]
    dropouts, light = architectures.OF["lstm"].dropouts, chosen("none-lighter")
    rates = tuple(value for name, value in light.items() if "dropout" in name)
    seen = set()
    for tokens in amounts:
        is_light = reached["none-lighter", tokens] < reached["none", tokens]
        assert (_for(dropouts, tokens) == rates) == is_light
        seen.add(is_light)
    assert seen == {True, False}


def _for(steps, tokens):
    return next(value for limit, value in steps if limit is None or tokens < limit)


def test_the_search_goes_on_from_rows(tmp_path, monkeypatch):
    rows = Rows(tmp_path)
    monkeypatch.setattr(choosing.run_flags, "folders", lambda: (tmp_path, rows))
    first = ScarceRun(PRESETS["search"], "none", 0.125, 1, (1,))
    assert values_of(first) == START
    with pytest.raises(ValueError, match="trial 2 follows from those before"):
        values_of(first._replace(trial=2))
    row = {"study": "trials", "arm": "none", "corpus": "ptb", "fraction": 0.125}
    row |= {"seed": 1, "mixed_valid": 190.0, "mixed_test": 189.0, "values": START}
    rows.write(first.name, row)
    second = values_of(first._replace(trial=2))
    assert second == values_of(first._replace(trial=2)) != START
    assert all(SPACE[name].low <= v <= SPACE[name].high for name, v in second.items())

    # What diverged is as bad as can be, and the search goes on.
    row |= {"mixed_valid": None, "mixed_test": None, "values": second}
    rows.write(first._replace(trial=2).name, row)
    third = values_of(first._replace(trial=3))
    assert third not in (START, second)


def test_first_trials_are_drawn_apart():
    tried: list = []
    for _ in range(5):
        tried.append((suggested(SPACE, tried, initial=6, seed=1), 5.0))
    places = [
        round(position(values[name], where), 6)
        for values, _ in tried
        for name, where in SPACE.items()
        if not where.integer
    ]
    assert len(set(places)) == len(places) == 30


def test_a_gaussian_process_goes_where_losses_are_low():
    space = {name: SPACE[name] for name in ("input_dropout", "decay")}

    def search(told):
        tried: list = []
        found = []
        for _ in range(7):
            values = suggested(space, tried, initial=4, seed=1)
            x, y = (position(values[name], space[name]) for name in space)
            found.append((x - 0.9) ** 2 + (y - 0.1) ** 2)
            tried.append((values, told(5 + found[-1])))
        return found

    # The same first four; then one is told nothing.
    seen, blind = search(lambda loss: loss), search(lambda _: 5.0)
    assert seen[:4] == blind[:4]
    assert min(seen[4:]) < min(seen[:4]) and np.mean(seen[4:]) < np.mean(blind[4:])


def _trials(*arms, trials):
    return {"study": "trials", "arms": arms, "trials": trials}


def test_runs_of_presets():
    names = [run.name for run in runs_of(PRESETS["small"], [1, 2])]
    assert names[:4] == [
        "arms-kneser-ney-2-ptb-8th",
        "arms-kneser-ney-5-ptb-8th",
        "arms-none-ptb-8th-seed1",
        "arms-none-ptb-8th-seed2",
    ]
    assert len(runs_of(PRESETS["search"], [1])) == 12
    assert len(runs_of(PRESETS["trials"], [1])) == 4 * len(PRESETS["trials"].arms)
    mean = runs_of(PRESETS["small"], [1, 2])[-1]
    assert mean.name == "arms-ensemble-imm-2-ptb-8th"
    assert mean.settings["seeds"] == [1, 2]
    assert mean.settings["values"] == chosen("imm-2")
    medium = runs_of(PRESETS["published-medium"], [1])[-1]
    assert medium.name == "published-zaremba-medium-imm-ptb-seed1"
    assert medium.settings["values"]["width"] == 650
    assert medium.settings["values"]["orders"] == ARMS["imm-2345"].orders
    assert medium.settings["values"]["coefficient"] == CHOSEN["imm-2345"]["coefficient"]
    half = runs_of(PRESETS["curve"], [1])[-3]
    assert half.name == "curve-none-ptb-2th-seed1"
    assert half.settings["values"] == chosen("none")
    for wrong, message in (
        ({"arms": ("imm-9",)}, "--arms must be some of"),
        ({"trials": (1,)}, "--trials are of --study=trials"),
        (_trials("none", "imm-2", trials=(1, 9)), "must lie in 1..4 for arm imm-2"),
        (_trials("zaremba-small", trials=(1,)), "arm zaremba-small has no trials"),
        ({"fractions": (1.5,)}, "must lie in"),
        ({"epochs": 0}, "--epochs must be at least 1"),
        ({"project_steps": 2}, "--project_steps is of the arms zaremba-small"),
    ):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(PRESETS["small"], **wrong).check()


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
    # Pairs of the text that a word follows.
    contexts = set(itertools.pairwise(text[:-1]))
    before = [corpus.vocabulary.eos_id] * 2 + list(corpus.test)
    known = [(before[i], before[i + 1]) in contexts for i in range(400)]
    assert found["context"][2]["tokens"] == sum(known)


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
    assert "| ensemble-none | 3 | 200.00 | 199.00 | -12.00 | 180.00 | 179" in found[3]
    # Alone and mixed.
    assert found[4].count("| **-3.00 ± 0.00** |") == 2
    # What has no seeds stands beside the mean of all; an ensemble beside its seeds'.
    assert "| +78.00 |" in found[2] and "| -12.00 |" in found[3]
    rows[-1] |= {"gain": {"nats": -0.06, "error": 0.01, "ratio": 0.94}}
    assert "| -12.00 ± 3.58 |" in tables(rows)["arms"]
    rows[-1] |= {"seeds": [1, 2, 3, 4]}
    assert "| 0.25 |  |  |" in tables(rows)["arms"].splitlines()[3]
    rows[-1] |= {"seeds": [1, 2, 3]}
    tried = [_row("imm-2", 1, 200 - n, "trials", trial=n) for n in (1, 2)]
    lines = tables(tried)["trials"].splitlines()
    assert lines[2] == "| imm-2 | 2 | 218.00 | 198.00 | 0.25 |  | coefficient 0.5 |"
    score = {"test": {"mixed": 150.0, "kneser_ney": 169.0}, "valid": {"mixed": 1.0}}
    of_all = {"kneser-ney-2": score, "kneser-ney-5": score}
    table = tables([_row("none", 1, 190, "counted", counted=of_all)])["counted"]
    assert "| n-gram alone |  |  | 169.00 |  | 169.00 |  |" in table


def test_factors_are_shares_of_what_the_recipe_needs():
    recipes = {"untuned": Curve({0.125: 240.0, 0.25: 170.0, 1.0: 110.0})}
    arms = by_arms([_row("none", 1, 171.0), _row("ensemble-none", 1, 106.0)])
    curve = [_row("none", 1, 191, fraction=0.125), _row("none", 1, 151, fraction=0.25)]
    recipes |= tuned_curves([*curve, _row("imm-2", 1, 9.0)])
    # Of each amount the settings that are the better ones on validation text.
    lighter = [
        _row("none-lighter", 1, value, fraction=share)
        for share, value in ((0.125, 200), (0.25, 140), (0.5, 100))
    ]
    found = tuned_curves([*curve, *lighter])["tuned `none`, mixed"]
    assert found == {0.125: 190.0, 0.25: 139.0, 0.5: 99.0}
    lines = factors(arms, recipes).splitlines()
    assert "untuned | tuned `none`, alone | tuned `none`, mixed" in lines[0]
    # Of test text mixtures have 170 and 105, which none reaches with all the text.
    assert lines[2].startswith("| ensemble-none | 105.0 |")
    assert lines[2].count("*") == 3
    mixed = 2 ** (np.log(190 / 170) / np.log(190 / 150))
    assert lines[3] == f"| none | 170.0 | 2.00 | 2.00 | {mixed:.2f} |"
    assert factor_of(arms["none"], Curve({0.1: 200.0, 0.2: 210.0})) == ""
    assert factors({}, recipes) == "" and tuned_curves(curve[:1]) == {}


def test_the_untuned_recipe_is_that_of_imm_lm():
    curves = untuned_curves(pathlib.Path(page.__file__).parents[1])
    alone, mixed = curves.values()
    assert [*alone] == [*mixed] == [0.0625, 0.125, 0.25, 0.5]
    # Three seeds at an eighth.
    assert alone[0.125] == pytest.approx(239.46, abs=0.01)
    assert all(mixed[share] < alone[share] for share in alone)


def test_more_tables():
    of_all = {"valid": {"mixed": 150.0}, "test": {"mixed": 149.0, "kneser_ney": 160.0}}
    both = {"kneser-ney-2": of_all, "kneser-ney-5": of_all}
    kinds = [{"tokens": 5, "alone": 6.0, "mixed": 5.5, "n_gram": 6.0}] * 4
    kinds += [{"tokens": 0, "alone": None, "mixed": None, "n_gram": None}]
    more = {"kinds": {"frequency": kinds, "context": kinds}}
    gain = {"nats": 0.1, "error": 0.01, "ratio": np.exp(-0.1)}
    rows = [
        _row("kneser-ney-5", 1, 270, seconds=None, mixed_2={"test": 280.0}, **more),
        _row("none", 1, 190, mixed_2={"test": 200.0}, **more),
        _row("ensemble-none", 1, 180, seeds=[1, 2], seconds=None, gain=gain, **more),
        _row("ensemble-imm-2", 1, 177, seeds=[1, 2], gain={**gain, "parts": [1, 2]}),
        _row("kneser-ney-5", 1, 140, "published", seconds=None),
        _row("zaremba-small", 1, 110, "published", bits_per_byte={"test": 1.5}),
        _row("none", 1, 300, "corpora", bits_per_byte={"test": 1.5}),
        _row("none", 1, 250, "curve", fraction=0.0625),
        _row("none", 1, 190, "curve"),
        _row("counted-imm-2", 1, 190, "trials", trial=1, counted=both),
        _row("counted-imm-2", 1, 185, "trials", trial=2, counted=both),
    ]
    rows[-1]["counted"] = {
        **both,
        "kneser-ney-5": {**of_all, "valid": {"mixed": 151.0}},
    }
    rows += [
        {**_row("none", 1, 1, "trials", trial=3, values=START), **_NOTHING},
        {
            **_row("zaremba-medium", 1, 1, "projected"),
            **_NOTHING,
            **{"step_seconds": 0.5, "steps": 7200, "hours": 1.0},
        },
    ]
    found = tables(rows)
    assert (
        "| ensemble-none | 2 | 179.00 | 0.1000 ± 0.0200 | 9.5 |" in found["ensembles"]
    )
    assert "| 176.00 | 0.1000 ± 0.0200 | 9.5 |  |" in found["ensembles"]
    rows[2]["gain"] = {**gain, "parts": [1.01, 2.03]}
    # 2 standard errors of -0.01 and -0.03 are 0.02, of 176.
    assert "| 9.5 | -3.00 ± 3.52 |" in tables(rows)["ensembles"]
    rows[2]["gain"] = {**gain, "parts": [1.02, 2.03]}
    assert "| 9.5 | -3.00 ± 1.76 |" in tables(rows)["ensembles"]
    assert "| none | alone | 6.000 |" in found["frequency"]
    assert "| kneser-ney-5 |  |" in found["published"].replace("| 1 |", "|  |", 1)
    assert found["corpora"].endswith("| 1.500 |")
    assert found["curve"].count("| none |") == 2
    assert "| zaremba-medium | 0.50 | 7,200 | 1.0 |" in found["projected"]
    # N-grams of all text judge what they are matched in; the worst is what diverged.
    lines = found["trials"].splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == ["1", "2", "3"]
    assert "| 150.00 | coefficient 0.5 |" in lines[0]
    assert "| 3 | diverged |  |  |  |" in lines[2] and lines[2].endswith("l2 0.0001 |")


_NOTHING = dict.fromkeys(("valid", "test", "mixed_valid", "mixed_test", "mu"))


def test_the_headline_has_the_difference_and_what_it_is_worth(tmp_path, monkeypatch):
    rows = Rows(tmp_path / "scarce_text")
    for seed in (1, 2, 3):
        for arm, base in (("none", 190), ("noising", 180)):
            row = _row(arm, seed, base + seed)
            rows.write(f"{arm}{seed}", row)
    curves = {"a recipe": Curve({0.125: 240.0, 0.25: 120.0})}
    monkeypatch.setattr(page, "untuned_curves", lambda _: curves)
    found = page.headline(tmp_path / "scarce_text")
    assert "noising is best, 181.0, less none **-10.00 ± 0.00**;" in found
    assert "data factor of noising: 1.33 over a recipe" in found
    rows.write("mean", _row("ensemble-none", 1, 171, seeds=[1, 2, 3]))
    rows.write("n-gram", _row("kneser-ney-5", 1, 271))
    found = page.headline(tmp_path / "scarce_text")
    assert "Kneser-Ney 5 (which has 270.0): ensemble-none is best, 170.0" in found
    assert "less none -21.00; less none: noising **-10.00 ± 0.00**;" in found
    for arm, mixed, parts in (
        ("none", 171, [5.2, 5.3]),
        ("noising", 166, [5.18, 5.27]),
    ):
        gain = {"nats": 0.1, "error": 0.01, "ratio": 0.9, "parts": parts}
        name = "mean" if arm == "none" else "other"
        rows.write(name, _row(f"ensemble-{arm}", 1, mixed, gain=gain))
    found = page.headline(tmp_path / "scarce_text")
    assert "ensemble-noising is best, 165.0," in found
    assert "less ensemble-none -5.00 ± 1.65 (of the text alone);" in found

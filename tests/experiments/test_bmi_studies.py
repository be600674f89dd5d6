"""The studies of BMI: what they count and report; each binary once, from end to end."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from experiments.bmi_generation import report as generation_report
from experiments.bmi_generation.config import GenerationConfig
from experiments.bmi_generation.measuring import runs_of as generation_runs
from experiments.bmi_lm import report as language_report
from experiments.bmi_lm.config import PRESETS as LANGUAGE
from experiments.bmi_lm.training import LanguageRun, regularised, runs_of
from experiments.bmi_variance import report as variance_report
from experiments.bmi_variance.config import VarianceConfig
from experiments.bmi_variance.variance import runs_of as variance_runs
from experiments.kit import run_files
from experiments.kit.paired import less, paired_difference
from experiments.mi_known.gaussian import correlation
from experiments.mi_text import report as text_report
from rlm_tf.models import AWDLanguageModel
from tests.experiments.binaries import run_binary
from tests.training.toy import InterruptAt, Interruption, interrupt


def test_only_what_is_no_chance_is_bold():
    assert paired_difference([(1.0, 0.0), (1.1, 0.0), (0.9, 0.0)]) == (
        "**+1.00 ± 0.12**"
    )
    assert paired_difference([(1.0, 0.0), (-1.2, 0.0)]) == "-0.10 ± 2.20"
    # Two pairs may agree by chance.
    assert paired_difference([(1.0, 0.0), (1.0, 0.0)]) == "+1.00 ± 0.00"
    assert paired_difference([(1.0, 0.5)]) == "+0.50"
    assert paired_difference([]) == ""


def test_arms_without_bmi_have_one_weight():
    names = [run.name for run in runs_of(LANGUAGE["small"], [1])]
    assert names == [
        "24epochs-higher-rate-none-seed1",
        "36epochs-higher-rate-none-long-seed1",
        "24epochs-higher-rate-base-weight0.01-seed1",
        "24epochs-higher-rate-full-weight0.01-seed1",
        "24epochs-higher-rate-full-last-weight0.01-seed1",
    ]
    assert len(runs_of(LANGUAGE["weights"], [9])) == 6
    assert len(runs_of(LANGUAGE["base"], [9])) == 4


def test_correlations_have_the_information():
    rho = correlation(6.0, 20)
    assert -10 * math.log(1 - rho**2) == pytest.approx(6.0)


def test_the_authors_variant_is_what_is_an_option():
    config = dataclasses.replace(
        LANGUAGE["small"], variant="authors", arms=("none", "full")
    )
    config.check()
    *_, run = runs_of(config, [1])
    assert run.name == "24epochs-authors-higher-rate-full-weight0.01-seed1"
    model = AWDLanguageModel(7, embedding_width=3, units=(4,), mixture_components=1)
    arm = LanguageRun(config, "full", "published", 0.1, 1)
    found = regularised(arm, model)
    critic = found.discriminator
    assert (critic.units, critic.directions, critic.order) == (300, 2, "authors")
    assert (critic.feature_dropout, critic.hidden_dropout) == (0.1, 0.3)
    assert (found.scale, found.weight, found.raml_weight) == ("batch", 0.1, 1.0)
    assert (config.tail, config.own_patience) == ("infinite", 10)
    assert (LANGUAGE["small"].tail, LANGUAGE["small"].own_patience) == (
        "renormalised",
        5,
    )
    with pytest.raises(ValueError, match="is of --corpus=ptb or wikitext-2"):
        dataclasses.replace(config, corpus="python-docs").check()


def _estimate(mean):
    return {"mean": mean, "deviation": 0.1, "standard_error": 0.05, "folds": [mean]}


def test_reports_of_texts(tmp_path):
    row = {
        "tokens": 1000,
        "gap": 10,
        "mine": _estimate(1.0),
        "nwj": _estimate(0.9),
        "shuffled": _estimate(0.0),
        "ceiling": 12.0,
        "critic": "mlp",
    }
    rows = [{**row, "text": text} for text in ("ptb", "wikitext-2")]
    text = text_report.report(
        {"real": {"rows": rows}, "critics": {"rows": rows}}, tmp_path
    )
    assert "| ptb | 1,000 | 1.000 ± 0.050 | 0.10 | 0.900 | 0.000 | 12.0 | 1.18" in text
    assert "| critic | ptb | wikitext-2 | ptb, NWJ | wikitext-2, NWJ | wiki" in text
    shown = "| mlp | 1.000 ± 0.050 | 1.000 ± 0.050 | 0.900 ± 0.050 | 0.900 ± 0.050 |"
    assert f"{shown} +0.000 ± 0.141 |" in text
    said = [
        {
            "name": f"{arm}{seed}",
            "arm": arm,
            "seed": seed,
            "information": [
                {
                    "gap": gap,
                    "mine": _estimate(0.2 + 0.3 * (arm == "full") + gap),
                    "nwj": _estimate(0.2),
                    "shuffled": _estimate(0.0),
                }
                for gap in (0, 10)
            ],
            "reverse": {"valid": 100.0, "test": 90.0, "epochs": 3},
            "sandwich": {"lower": 1.0, "upper": 3.0, "conditional_entropy": 50.0},
            "distinct_words": 1000,
        }
        for arm, seed in itertools.product(("none", "full"), (1, 2, 3))
    ]
    text = generation_report.report(said, tmp_path)
    assert "| 0 | full | 0.500 ± 0.000 | 0.050 | **+0.300 ± 0.000** |" in text
    assert "| 10 | none | 10.200 ± 0.000 | 0.050 |  |  | 0.200 ± 0.000 |" in text
    assert text.count("0.48 ± 0.03") == 1
    assert "| full | 100.0 ± 0.0 | 90.0 ± 0.0 | +0.0 ± 0.0 |" in text
    assert "| 50.00 ± 0.00 | 52.00 ± 0.00 | +0.00 ± 0.00 |" in text


def test_one_row_beside_several_is_compared_with_that_of_its_seed():
    three = [{"seed": seed, "x": value} for seed, value in ((1, 1.0), (2, 2.0), (3, 6))]
    one = [{"seed": 1, "x": 5.0}]
    groups = {"none": three, "real": one}
    assert less("none", groups, one, "x") == "+4.00"
    assert less("real", groups, three, "x") == "-4.00"
    # Nothing is said where no seed is in both.
    assert less("none", {"none": [{"seed": 4, "x": 4.0}]}, one, "x") == ""


def _language_row(arm, seed, change):
    scores = {
        split: {
            "alone": 200.0 + seed + change,
            "mixed": 150.0 + seed,
            "kneser_ney": 270,
        }
        for split in ("valid", "test")
    }
    return {
        "name": f"{arm}{seed}",
        "arm": arm,
        "seed": seed,
        "trial": "published",
        "weight": None if arm.startswith("none") else 0.1,
        "scores": scores,
        "finetuned": {**scores, "mu": 0.3},
        "curve": {
            "seconds": [10.0, 20.0],
            "nll": [5.0, 4.9],
            "averaged_loss": [5.5, 5.4],
            "two_tailed_loss": [5.5, 5.3],
        },
    }


def test_report_of_language_models(tmp_path):
    rows = [
        _language_row(arm, seed, change)
        for arm, change in (("none", 0.0), ("none-long", -3.0), ("base", -1.0))
        for seed in (1, 2, 3)
    ]
    single = {**rows[0], "trial": "more-dropout"}
    del single["finetuned"]
    tables = language_report.tables([*rows, single])
    # With standard deviations of 1, 2 over the seeds; every seed gains as much.
    (line,) = (x for x in tables["perplexity"].splitlines() if x.startswith("| base |"))
    assert line.split(" | ")[5:9] == [
        "201.00 ± 1.00",
        "**-1.00 ± 0.00**",
        "**+2.00 ± 0.00**",
        "",
    ]
    assert "| base | 152.00 ± 1.00 | 152.00 ± 1.00 | +0.00 ± 0.00 |" in tables["mixed"]
    assert "| Kneser-Ney 5 alone | 270.00 | 270.00 |" in tables["mixed"]
    assert "| none | 221.41 ± 0.00 | 200.34 ± 0.00 |" in tables["averages"]
    assert tables["trials"].splitlines()[-1] == "| more-dropout | 201.00 | 201.00 |"
    assert "| none | 20 ± 0 | 10.0 ± 0.0 | 3 |" in tables["cost"]
    # Arms of several weights are told apart.
    other = {**_language_row("base", 1, 4.0), "weight": 0.5}
    assert "| base, 0.5 | " in language_report.tables([*rows, other])["perplexity"]
    language_report.report(rows, tmp_path)
    assert (tmp_path / "bmi_lm.png").stat().st_size > 5000


def _variance_row(seed, scale):
    histogram = [0] * 60
    # Of the last fifth of a power of ten below 1, and of 100 and more.
    histogram[19], histogram[30] = 1, 99
    found = {"mean": 1e4, "median": 2e3 * scale, "histogram": histogram}
    raml = {"signal": 1.0 + seed, "noise": 4.0, "mean_variance": 1.0, "seconds": 2.0}
    return {
        "name": f"full-seed{seed}",
        "seed": seed,
        "batches": 200,
        "edges": np.linspace(-4, 8, 61).tolist(),
        "estimators": {"rl": {**raml, "signal": 1.0}, "raml": raml},
        "ratios": {"raml": {"compared": 10, "raw": found}},
    }


def test_report_of_variances(tmp_path):
    rows = [_variance_row(1, 1.0), _variance_row(2, 4.0)]
    text = variance_report.report(rows, tmp_path)
    # The geometric mean of 2,000 and 8,000.
    assert (
        "| 2 | 1e+04 (1e+04 to 1e+04) | 4e+03 (2e+03 to 8e+03) | 99.0 ± 0.0 % |" in text
    )
    # Times the squares of 2 and 3, the ratios of signals.
    assert (
        "| 2 | 6e+04 (4e+04 to 9e+04) | 2.4e+04 (8e+03 to 7.2e+04) | 100.0 ± 0.0 % |"
        in text
    )
    assert "| rl | 1 | 4 | 0.250 ± 0.000 |  | 10 ms |" in text
    assert "| 0.625 ± 0.177 | +0.375 ± 0.250 | 10 ms |" in text
    rows[0]["estimators"]["rl"]["signal"] = 0.0
    alone = variance_report.report(rows[:1], tmp_path)
    assert "| raml | as they are | 1 | 1e+04 | 2e+03 | 99.0 % |" in alone
    assert "| raml | expected gradients of one norm | 0 |  |  |  |" in alone


@pytest.mark.parametrize("found", [[], ["a", "b"]])
def test_studies_need_the_one_model_of_a_run(tmp_path, found):
    for name in found:
        (tmp_path / f"{name}-full-weight0.01-seed1").mkdir()
        (tmp_path / f"{name}-full-weight0.01-seed1" / "model.keras").touch()
    message = f"arm full, seed 1; found {len(found)}"
    for runs, config in (
        (generation_runs, GenerationConfig(arms=("full",), models_dir=str(tmp_path))),
        (variance_runs, VarianceConfig(models_dir=str(tmp_path))),
    ):
        config = dataclasses.replace(config, corpus="python-docs")
        (run,) = runs(config, [1])
        with pytest.raises(FileNotFoundError, match=message):
            run.prepare()


@pytest.mark.landing
def test_a_killed_run_of_bmi_lm_ends_with_the_same_numbers(tmp_path, monkeypatch):
    """Interrupted in Phase II, and in finetuning, two steps after an epoch."""
    config = dataclasses.replace(LANGUAGE["smoke"], arms=("full",))
    (run,) = runs_of(config, [1])
    expected = run.train(run.prepare(), tmp_path / "whole")
    fit = run_files.fit_resumably
    stages = []

    def interrupted(model, data, folder, epochs, kept, seconds, **options):
        stages.append(folder)
        # Phase II begins after the first epoch; it is gone through twice.
        moment = {1: data.steps + 2, 3: 2}.get(len(stages))
        others = [InterruptAt(moment, interrupt)] if moment else []
        fit(model, data, folder, epochs, kept, 1e-3, others=others, **options)

    monkeypatch.setattr(run_files, "fit_resumably", interrupted)
    for _ in range(2):
        with pytest.raises(Interruption):
            run.train(run.prepare(), tmp_path / "killed")
    found = run.train(run.prepare(), tmp_path / "killed")
    assert len(set(stages)) == 2
    for name in ("scores", "finetuned"):
        assert found[name] == expected[name]
    for curve in ("curve", "finetune_curve"):
        for name, values in expected[curve].items():
            assert name == "seconds" or found[curve][name] == values


# === Binaries ===


@pytest.mark.landing
@pytest.mark.parametrize(
    ("name", "flags", "titles"),
    [
        ("bmi_source", ("--seeds=1",), ("sentences", "I by counting markers")),
        ("bmi_lm", ("--seeds=1",), ("perplexity",)),
        ("bmi_generation", ("--seeds=1",), ("MINE, nats",)),
        ("bmi_variance", ("--seeds=1",), ("signal / noise",)),
    ],
)
def test_a_grid_from_end_to_end(tmp_path, name, flags, titles):
    flags = ("--preset=smoke", f"--output_dir={tmp_path}", *flags)
    printed = run_binary(name, *flags, check=True).stdout
    assert all(title in printed for title in titles)
    rows = (tmp_path / "results" / "rows.jsonl").read_text().splitlines()
    assert all(json.loads(row)["row"]["commit"] for row in rows)
    again = run_binary(name, *flags, check=True).stdout
    assert again.count("done before") == len(rows)


@pytest.mark.landing
@pytest.mark.parametrize(
    ("name", "parts"),
    [("mi_known", "gaussian,markov,topic"), ("mi_text", "real,controls")],
)
def test_parts_from_end_to_end(tmp_path, name, parts):
    flags = ("--preset=smoke", f"--parts={parts}", f"--output_dir={tmp_path}")
    printed = run_binary(name, *flags, check=True).stdout
    assert "| --- |" in printed
    assert "done before" in run_binary(name, *flags, check=True).stdout

"""The study of `rlm_tf train` on texts of five kinds: what it runs and reports."""

from __future__ import annotations

import pytest

from experiments.own_text.config import ARMS, WHOLE_ARMS, options_of
from experiments.own_text.report import mixture_gains, tables_of
from rlm_tf.commands.settings import TrainSettings
from rlm_tf.commands.training import architectures


def _row(arm, seed, mixture):
    scores = {"n-gram": 2.0, "model": 1.9, "mixture": mixture}
    return {
        "text": "german",
        "arm": arm,
        "seed": seed,
        "bytes": 1000,
        "seconds": 60,
        "saved_model_megabytes": 1.0,
        "training": {"epochs": 3, "seconds": 50},
        "plan": {"vocabulary_size": 9, "rule": "words", "width": 8},
        "scores": {
            name: {"test": {"bits_per_byte": bits}} for name, bits in scores.items()
        },
    }


def test_gains_are_of_the_same_seeds():
    rows = [_row("mixture", seed, 1.8 - seed / 10) for seed in (1, 2, 3)]
    rows += [_row("earlier", 1, 2.0), _row("earlier", 2, 2.0)]
    mean, error = mixture_gains(rows)["german"]
    assert (mean, error) == pytest.approx((20.0, 5 / 3**0.5))
    reached = tables_of(rows)["reached"].splitlines()[-1]
    assert "| 20.0 ± 2.9 | 2.000 ± 0.000 | 17.5 ± 2.5 |" in reached
    only = [row for row in rows if row["arm"] == "mixture"]
    assert "| 20.0 ± 2.9 |  |  |" in tables_of(only)["reached"]
    noisy = [*only, _row("noising", 1, 1.6), _row("noising", 2, 1.6)]
    assert "| 1.600 ± 0.000 | 2.9 ± 2.9 |" in tables_of(noisy)["reached"]


def test_earlier_defaults_are_given_and_are_not_those_of_today():
    fields = set(TrainSettings.__dataclass_fields__)
    of_today = architectures.OF["lstm"]
    for arm in ARMS:
        options = dict(each.lstrip("-").split("=") for each in _valued(arm))
        assert {*options} <= fields
        if arm == "mixture":
            assert {*options} == {"minutes", "seed"}
            continue
        if arm == "noising":
            assert {*options} == {"minutes", "seed", "noising"}
            continue
        assert ("minutes" in options) == (arm in WHOLE_ARMS)
        rates = tuple(float(rate) for rate in options["dropouts"].split(","))
        assert rates != of_today.dropouts[0][1]
        assert float(options["learning_rate"]) != of_today.learning_rates[0][1]
        assert float(options["l2"]) == 0 != of_today.l2s[0][1]


def _valued(arm):
    return [each for each in options_of(arm, 5, 1) if "=" in each]

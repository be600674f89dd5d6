"""What is said of a trained model that is worse than it seems."""

from __future__ import annotations

import pytest

from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.training.results import served_of, verdict


def _results(mu, *, valid, test, tempered=None):
    """Results whose n-gram takes 3 nats a token, and the model and mixture these."""

    def row(pair):
        return {
            split: {"nats_per_token": nats}
            for split, nats in zip(("valid", "test"), pair, strict=True)
        }

    scores = {
        "n-gram": row((3.0, 3.0)),
        "model": row((valid[0], test[0])),
        "mixture": row((valid[1], test[1])),
    }
    if tempered is not None:
        scores["model, temperature"] = row(tempered)
    return {"scores": scores, "mixture": {"mu": mu, "best_mu": 0.5}}


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (_results(0.5, valid=(2.9, 2.8), test=(2.9, 2.8)), []),
        (
            _results(0.5, valid=(3.1, 2.8), test=(2.9, 2.8)),
            [
                "the model alone is not better than its n-gram on the validation text; "
                "the mixture, which is served, is"
            ],
        ),
        (
            _results(0.5, valid=(3.1, 2.8), test=(3.1, 3.2)),
            ["the mixture, which is served, is not better than its n-gram on the "],
        ),
        (
            _results(None, valid=(3.1, 2.8), test=(3.1, 2.8)),
            [
                "the model, which is served, is not better than its n-gram on the "
                "validation and the test text"
            ],
        ),
        # Served at the better temperature, where it is ahead.
        (
            _results(None, valid=(3.1, 2.8), test=(2.9, 2.8), tempered=(2.9, 2.8)),
            [
                "the model alone is not better than its n-gram on the validation text; "
                "the model at its best temperature, which is served, is"
            ],
        ),
    ],
)
def test_what_is_served_is_what_is_judged(results, expected):
    found = verdict(results)
    assert len(found) == len(expected)
    for line, beginning in zip(found, expected, strict=True):
        assert line.startswith(beginning)


def test_a_mixture_that_is_nearly_the_n_gram_is_told():
    results = _results(0.95, valid=(2.9, 2.8), test=(2.9, 2.8))
    results["mixture"]["best_mu"] = 0.95
    assert verdict(results) == [
        "the best mixture is 95 % n-gram: the model adds little"
    ]
    assert served_of(results) == "mixture"


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1, "1 epoch"), (1.0, "1 epoch"), (1200, "1,200 epochs"), (0.3, "0.3 epochs")],
)
def test_numbers_of_things(number, expected):
    assert number_of("epoch", number) == expected

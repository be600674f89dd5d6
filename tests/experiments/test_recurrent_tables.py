"""Tables of the studies of averages and of the reverse copy task, on invented rows."""

from __future__ import annotations

import pytest

from experiments.averaging import tables as averaging
from experiments.reverse_copy import report as copying


def _lines(text):
    """Returns the lines of a table below its titles, as cells."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()[2:]
    ]


# === Averages ===

TWO_TAILED = {
    "step": [10, 20, 30],
    "loss": [3.0, 2.0, 1.5],
    "raw_loss": [3.0, 2.5, 2.75],
    "length": [1, 10, 1200],
    "event": ["switch; empty both", "", "switch"],
}


def test_averages_are_shown_early_at_their_end_and_beside_2ta():
    found = {
        "trajectory": {
            "curves": {
                "2TA, E": TWO_TAILED,
                "2TA, 4E": {},
                "EMA, 0.9": {"step": [25], "loss": [1.25], "length": [25]},
            }
        },
        "drop": {"curves": {"drops": {**TWO_TAILED, "loss": [3.0, 1.0, 2.0]}}},
    }
    # Of 30 steps 40% are 12, after which the evaluation at 20 is the first.
    assert _lines(averaging.tables(found)["trajectory"]) == [
        ["iterates themselves", "2.500", "2.750", "1.500", "2.500", "4.02", "1"],
        ["2TA, E", "2.000", "1.500", "1.500", "1.500", "3.92", "1,200"],
        ["EMA, 0.9", "1.250", "1.250", "1.750", "1.250", "", ""],
        ["drops, at 60% and 80%", "1.000", "2.000", "1.500", "1.000", "", "1,200"],
    ]


def test_tuned_member_of_a_family_is_the_best_at_the_end():
    curves = {
        "TA, 0.1": {"loss": [0.1, 2.0]},
        "TA, 0.5": {"loss": [9.0, 1.0]},
        "EMA, 0.9": {"loss": [0.5]},
    }
    assert averaging.best_of(curves, "TA, ") == "TA, 0.5"
    assert averaging.best_of(curves, "Polyak") is None


def test_switches_and_resets_are_counted():
    text = averaging.failing({"2TA": TWO_TAILED})
    assert _lines(text) == [
        ["iterates themselves", "2.500", "2.750", "", ""],
        ["2TA", "1.500", "1.500", "2", "1"],
    ]


@pytest.mark.parametrize(
    ("evaluations", "excess"),
    [(1, ["-1.0000", "", "-1.0000"]), (3, ["0.3333", "1.0000", "2.0000"])],
)
def test_excess_of_2ta_is_above_the_best_of_all_lengths(evaluations, excess):
    bounds = {
        "evaluations": 3,
        "short_below_optimal": 2,
        "long_below_twice": 3,
        "intervals": 1,
        "intervals_nearly_optimal": 0,
    }
    found = {
        "losses": [[5.0], [4.0, 3.0], [2.0, 1.0, 9.0]][:evaluations],
        "two_tailed": {"2": [{"loss": loss} for loss in (4.0, 3.0, 3.0)][:evaluations]},
        "bounds": {"2": bounds},
    }
    assert _lines(averaging.optimal_lengths(found)) == [
        ["algorithm 2", "2 of 3", "3 of 3", "0 of 1", *excess]
    ]


def test_least_squares_are_shown_at_three_times_and_beside_the_propositions():
    found = {
        "steps": [1, 10, 100],
        "excess_loss": {"2TA": [4.0, 2.0, 0.25], "raw": [3.0, 2.0, 1.0]},
        "length": {"mean": [1.0, 9.0, 80.0], "least": [1.0, 5.0, 60.0]},
        "switches_by_quarter": [3.0, 1.0, 0.25, 0.0],
        "runs_with_switches_in_every_quarter": 1,
        "monotone_runs": 4,
        "runs": 5,
    }
    made = averaging.tables({"least_squares": found})
    assert _lines(made["least_squares"]) == [
        ["2TA", "4", "2", "0.25"],
        ["iterates", "3", "2", "1"],
    ]
    seen = {number: text for number, _, text in _lines(made["propositions"])}
    assert "3.0, 1.0, 0.2, 0.0" in seen["3"] and "1 of 5" in seen["3"]
    assert seen["5"] == "in 4 of 5 problems"
    assert seen["6"] == "to 80 of 100 in the mean, 60 at least"
    assert "factor of 8 from" in seen["7"]


def test_cost_of_parts_is_summed():
    found = {
        "basin": {"seconds": 1000.4, "machine": "a"},
        "drop": {"seconds": 500.2, "machine": "b"},
    }
    assert _lines(averaging.cost(found)) == [
        ["basin", "1,000", "a"],
        ["drop", "500", "b"],
        ["all", "1,501", ""],
    ]


# === Reverse copy ===


def _row(cell, length, rate, valid, test, **others):
    return {
        "name": f"{cell}-{length}-{rate}",
        "cell": cell,
        "length": length,
        "learning_rate": rate,
        "nats_per_token": {"valid": valid, "test": test},
        "whole_sequences_right": 0.25,
        "embedding_width": 2,
        "width": 4,
        "parameters": 1000,
        "step_ms": 10.0 * rate,
        "seconds": 60.0,
        "settings": {"num_tokens": 100},
        **others,
    }


def test_cells_are_shown_at_their_best_rate_and_at_all():
    made = copying.tables(
        [
            _row("lstm", 1, 1, 1.0, 1.5),
            _row("lstm", 1, 2, 2.0, 0.5),
            _row("lstm", 3, 2, 1.0, 1.0, width=5),
            _row("rlstm", 1, 1, 1.0, 1.25),
            _row("rlstm", 1, 2, 0.0, 0.0, diverged="nll is nan"),
        ]
    )
    # A token of 100 costs 4.605 nats, and `<eos>` nothing.
    assert _lines(made["best"]) == [
        ["LSTM", "1", "1.500", "2.303", "25.0%", "1", "1"],
        ["LSTM", "3", "1.000", "3.454", "25.0%", "2", "1"],
        ["RLSTM", "1", "1.250", "2.303", "25.0%", "1", "1"],
    ]
    assert _lines(made["rates"]) == [
        ["LSTM", "1", "1.500", "0.500"],
        ["LSTM", "3", "", "1.000"],
        ["RLSTM", "1", "1.250", ""],
    ]
    assert _lines(made["widths"]) == [
        ["LSTM", "1,000", "2/4; 2/5", "498/787", "493/790"],
        ["RLSTM", "1,000", "2/4", "", ""],
    ]
    assert _lines(made["cost"]) == [
        ["LSTM", "1", "10 / 20", "60 / 60"],
        ["LSTM", "3", "20", "60"],
        ["RLSTM", "1", "10", "60"],
        ["all", "", "", "4 minutes"],
    ]

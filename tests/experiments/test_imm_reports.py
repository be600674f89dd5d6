"""Counts, flags and the scarcity report, on invented rows and tiny batches."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest
from absl import flags as absl_flags

from experiments import flags as config_flags
from experiments.imm import report, scarcity
from experiments.imm.config import PRESETS, RunConfig
from experiments.imm.counts import effective_counts
from rlm_tf.data import contiguous_batches


@pytest.mark.parametrize("bank_size", [0, 30, 1000])
@pytest.mark.parametrize("length", [1, 2])
def test_effective_counts_match_counting_by_hand(rng, length, bank_size):
    tokens = rng.integers(4, size=101).astype(np.int32)
    batches = contiguous_batches(tokens, 3, 8, prefix=0)
    expected, bank = [], []
    for step in range(batches.steps):
        (words, _), _, weights = batches.element(step)
        contexts = [
            tuple(words[row, t - length + 1 : t + 1])
            for row in range(3)
            for t in range(length - 1, 8)
            if weights[row, t] > 0
        ]
        number = collections.Counter(contexts)
        for context in contexts:
            lacking = max(6 - number[context], 0)
            expected.append(number[context] + min(bank.count(context), lacking))
        bank = (contexts + bank)[:bank_size]
    found = effective_counts(batches, length, 4, bank_size, bank_target=6)
    assert found["mean"] == pytest.approx(np.mean(expected))
    assert found["share_alone"] == pytest.approx(np.mean(np.array(expected) == 1))
    assert found["share_below_5"] == pytest.approx(np.mean(np.array(expected) < 5))
    assert found["quantiles"]["50"] == np.median(expected)


def _row(name, arm, tokens, perplexity, text="same"):
    return {
        "name": name,
        "config": {
            "arm": arm,
            "restricted_text": text,
            "fraction": 0.5,
            "epochs": 10,
        },
        "corpus": {"name": "ptb", "train_tokens": tokens},
        "perplexity": {"valid": perplexity * 1.03, "test": perplexity},
        "interpolation": {
            source: {"mu": 0.2, "valid": perplexity, "test": perplexity}
            for source in ("same", "all")
        },
        "restricted_perplexity": {
            source: {
                name: {"perplexity": value, "tokens": 9, "impossible": 1}
                for name in ("train", "valid", "test")
            }
            for source, value in (("same", 250.0), ("all", 200.0))
        },
        "parameters": 1234,
        "machine": "x86_64, 2 cores",
        "commit": "0123456789ab",
        "step_ms": 45.0,
        "other_cores": 0.1,
        "induced_perplexity": {
            name: {"perplexity": 300.0, "tokens": 9, "left_out": 2}
            for name in ("train", "valid", "test")
        },
        "seconds": 100.0,
        "epochs": 10,
        "curve": [
            {"epoch": epoch, "val_perplexity": perplexity * (2 - epoch / 10)}
            for epoch in range(10)
        ],
    }


def _rows():
    law = {d: float(np.exp(4.0 + 300 / d**0.5)) for d in (50_000, 100_000, 200_000)}
    rows = [_row(f"none-{d}-seed1", "none", d, value) for d, value in law.items()]
    # As good as arm none would be with twice the text.
    rows.append(_row("imm-in-batch-seed1", "imm-in-batch", 100_000, law[200_000]))
    rows.append(_row("imm-all-seed1", "imm-in-batch", 50_000, law[200_000], "all"))
    return rows


def test_equivalent_text_is_read_off_the_fitted_law(tmp_path):
    table = scarcity.scarcity_table(_rows())
    assert "| 100,000 | imm-in-batch |" in table and "| 2.00x |" in table
    assert "| 50,000 | imm-in-batch-all |" in table and "| 4.00x |" in table
    assert "| 50,000 | none | 10 |" in table and "*" not in table.split("worth |")[1]
    better = _row("imm-in-batch-seed1", "imm-in-batch", 200_000, 60.0)
    extrapolated = scarcity.scarcity_table([*_rows(), better]).splitlines()[-2:]
    assert any(line.endswith("x* |") for line in extrapolated)
    scarcity.scarcity_figure(_rows(), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_tables_have_one_line_a_group(tmp_path):
    rows = [_row(f"none-seed{s}", "none", 1000, 100.0 + s) for s in (1, 2, 3)]
    table = report.perplexity_table(rows)
    assert "| none | 3 | 105.06 ± 1.03 | 102.00 ± 1.00 |" in table
    header, rule, line = table.splitlines()
    assert header.count("|") == rule.count("|") == line.count("|") == 12
    assert "mixed with P_hat of all text" in header
    assert "| none | 300.00 ± 0.00 |" in report.induced_table(rows)
    report.learning_curves(rows, tmp_path / "curves.png", "title")
    assert (tmp_path / "curves.png").stat().st_size > 5_000


@dataclasses.dataclass(frozen=True)
class _Settings:
    test_rate: float = config_flags.setting(0.5, "A rate.")
    test_limit: int | None = config_flags.setting(None, "A limit.")
    test_fast: bool = config_flags.setting(False, "Whether.")


def test_flags_override_only_what_is_given():
    values = absl_flags.FlagValues()
    config_flags.define_flags(_Settings, flag_values=values)
    values(["program", "--test_limit=7", "--test_fast"])
    found = config_flags.config_from_flags(_Settings(test_rate=0.25), values)
    assert found == _Settings(0.25, 7, True)
    values["test_limit"].value = "none"
    assert config_flags.config_from_flags(_Settings(), values).test_limit is None
    values["test_rate"].value = "much"
    with pytest.raises(ValueError, match="--test_rate must be a float, found 'much'"):
        config_flags.config_from_flags(_Settings(), values)


@pytest.mark.parametrize(
    "config",
    [
        PRESETS["small"],
        PRESETS["paper"],
        RunConfig(arm="imm-in-batch", corpus="ptb", fraction=1 / 8, bank_target=20),
        RunConfig(max_decays=None, separate_clipping=True, seed=3),
    ],
)
def test_the_command_of_a_row_gives_its_settings(config):
    command = config.command.split()
    assert command[:3] == ["python", "-m", "experiments.imm_lm"]
    given = dict(part.removeprefix("--").split("=") for part in command[3:])
    assert given.pop("seeds") == str(config.seed) and "arm" in given
    values = absl_flags.FlagValues()
    config_flags.define_flags(RunConfig, without=("seed",), flag_values=values)
    values([" ".join(command[:3]), *command[3:]], known_only=True)
    found = config_flags.config_from_flags(PRESETS["small"], values)
    assert dataclasses.replace(found, seed=config.seed) == config

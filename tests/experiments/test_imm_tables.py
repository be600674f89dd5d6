"""The tables of `imm_lm`, on invented rows."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.imm_lm import (
    cost_report,
    n_grams,
    report,
    reporting,
    scarcity,
    settings_report,
)
from rlm_tf.data import load_corpus
from rlm_tf.evaluation import restricted_target_log_probs
from rlm_tf.restricted import KneserNey
from tests.experiments.imm_rows import row_of, rows_of_a_law


def test_equivalent_text_is_read_off_the_fitted_law(tmp_path):
    lines = scarcity.scarcity_table(rows_of_a_law()).splitlines()
    assert lines[2] == (
        "| 50,000 | none | 10 | 215.12 / 208.86 | 208.86 / 208.86 | 1.00x / 1.00x |"
    )
    of_imm = [line for line in lines if "imm-" in line]
    assert [line.split(" | ")[0] for line in of_imm] == ["| 50,000", "| 100,000"]
    assert of_imm[0].split(" | ")[1] == "imm-in-batch-all"
    assert of_imm[0].endswith("| 4.00x / 4.00x |")
    assert of_imm[1].endswith("| 2.00x / 2.00x |") and "*" not in "".join(lines)
    better = row_of("imm-in-batch-seed1", "imm-in-batch", 200_000, 60.0)
    extrapolated = scarcity.scarcity_table([*rows_of_a_law(), better]).splitlines()[-1]
    assert extrapolated.count("x*") == 2
    scarcity.scarcity_figure(rows_of_a_law(), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_runs_of_other_epochs_are_listed_but_not_compared():
    rows = rows_of_a_law()
    odd = row_of("none-full-seed1", "none", 400_000, 300.0)
    odd["config"]["epochs"] = 5
    laws = scarcity.law_table([*rows, odd]).splitlines()
    assert "| test, 10 epochs | 3 | 4.00 | 300.0 | 0.500 | 0.0000 |" in laws
    assert laws[-1].startswith("| test, any number of epochs | 4 | ")
    assert len(scarcity.law_table(rows).splitlines()) == 4
    table = scarcity.scarcity_table([*rows, odd])
    assert table.endswith(
        "| 400,000 | none | 5 | 309.00 / 300.00 | 300.00 / 300.00 |  |"
    )


def test_tables_have_one_line_a_group():
    rows = [row_of(f"none-seed{s}", "none", 1000, 100.0 + s) for s in (1, 2, 3)]
    table = report.perplexity_table(rows)
    assert "| none | 3 | 105.06 ± 1.03 | 102.00 ± 1.00 |" in table
    header, rule, line = table.splitlines()
    assert header.count("|") == rule.count("|") == line.count("|") == 12
    assert "mixed with P_hat of all text" in header
    induced = report.induced_table(rows)
    assert "| none | 300.00 ± 0.00 |" in induced
    assert "| Kneser-Ney of all text | 200.00 | 200.00 | 200.00 | 1 / 1 |" in induced
    said = report.provenance(rows)
    assert "1,234" in said and "0123456789ab" in said and "0.1 cores" in said


def test_what_others_report_stands_below():
    rows = [row_of("none-seed1", "none", 1000, 100.0)]
    table = report.perplexity_table(rows, times=False, published={"paper": (8.1, 7.0)})
    titles, _, ours, theirs = table.splitlines()
    assert "ms/step" not in titles and ours.startswith("| none | 1 | 103.00 | 100.00 |")
    assert theirs.startswith("| paper | - | 8.1 | 7.0 | - | ")
    assert titles.count("|") == ours.count("|") == theirs.count("|")
    induced = report.induced_table(rows, {"paper": (3.0, 2.0, 1.0)})
    assert induced.endswith("| paper | 3.00 | 2.00 | 1.00 | - |")


def test_names_have_the_part_of_the_text_only_where_it_differs():
    rows = [row_of(f"none-{part}-seed1", "none", 9, 1.0) for part in ("2th", "4th")]
    rows[1]["config"]["fraction"] = 0.25
    assert "| none | 1 |" in report.perplexity_table(rows[:1])
    both = report.perplexity_table(rows)
    assert "| none-2th | 1 |" in both and "| none-4th | 1 |" in both


def test_trials_are_side_by_side_and_the_chosen_ones_bold():
    tried = {
        "none-trial0": {"arm": "none", "dropout": 0.3},
        "none-trial1": {"arm": "none", "dropout": 0.4},
        "imm-in-batch-trial1": {
            "arm": "imm-in-batch",
            "dropout": 0.4,
            "coefficient": 1.0,
            "bank_size": 7000,
            "bank_target": 20,
            "pass_mode": "evaluation",
        },
    }
    rows = [row_of(name, "", 9, 100.0) for name in tried]
    for row, changes in zip(rows, tried.values(), strict=True):
        row["config"] |= changes
    rows[0]["interpolation"]["same"] = {"valid": 90.0, "test": None}
    assert settings_report.tuning_table(rows).splitlines() == [
        "| trial | none | interpolation | imm-in-batch |",
        "| ---: | --- | --- | --- |",
        "| 0 | dropout 0.3: 103.00 / 100.00 | **dropout 0.3: 90.00 / -** |  |",
        "| 1 | **dropout 0.4: 103.00 / 100.00** | dropout 0.4: 100.00 / 100.00 | "
        "dropout 0.4, lambda 1, bank of 7,000, contexts filled up to 20, "
        "evaluation pass: 103.00 / 100.00 |",
    ]


def test_variants_name_what_they_change():
    rows = [row_of(name, "imm-in-batch", 9, 100.0) for name in ("reference", "a", "b")]
    rows[0]["config"] |= {"bank_size": 7000}
    rows[1]["config"] |= {"bank_size": 0, "min_count": 2, "coefficient": 0.5}
    rows[2]["config"] |= {"bank_size": 7000, "separate_clipping": True}
    rows[0]["perplexity"] = {"valid": 90.0, "test": None}
    rows[1]["curve"][-1]["imm_coverage"] = 0.4
    assert settings_report.ablation_table(rows).splitlines()[2:] == [
        "| nothing |  |  | **90.00** | - |",
        "| lambda 0.5, no bank, `min_count` 2 | 0.40 | 1.25 | 103.00 | **100.00** |",
        "| separate clipping |  |  | 103.00 | **100.00** |",
    ]


def test_samplers_are_compared_before_the_last_epoch_and_by_their_steps():
    rows = [row_of(name, name, 9, 100.0) for name in ("none", "imm-sampled")]
    rows[1]["step_ms"] = 900.0
    rows[1]["curve"][3]["val_perplexity"] = 95.0
    lines = cost_report.sampler_table(rows).splitlines()[2:]
    assert lines[0] == (
        "| none | 120.0 | 103.00 | 100.00 | 100.00 | 100.00 | 45 | 1.0 |"
    )
    assert lines[1].startswith("| imm-sampled | 95.0 |")
    assert lines[1].endswith("| 900 | 20 |")
    (alone,) = cost_report.sampler_table(rows[1:]).splitlines()[2:]
    assert alone.endswith("| 900 | - |")


def test_projected_hours_are_marked():
    row = {
        "config": {"epochs": 10},
        "steps_per_epoch": 1800,
        "seconds_per_step": {"plain": 2.0, "one sample": 12.0},
        "hours_per_epoch": {"plain": 1.0, "sampled": 20.0},
    }
    assert cost_report.projection_table(row).splitlines()[2:] == [
        "| plain | 2.00 | 1.0 | 1.00 | 10 |",
        "| one sample | 12.0 | 6.0 |  |  |",
        "| sampled | 40.0 (projected) | 20 | 20.0 | 200 |",
    ]


def test_hours_are_added_up():
    rows = [row_of("a", "none", 9, 1.0), row_of("b", "none", 9, 1.0)]
    rows[0]["seconds"], rows[1]["seconds"] = 3600.0, 1800.0
    rows[1]["epochs"] = 12
    table = cost_report.hours_table({"main": rows, "full": [], "tuning": rows[:1]})
    assert table.splitlines()[2:] == [
        "| main | 2 | 10 to 12 | 30 to 60 | 1.5 |",
        "| tuning | 1 | 10 | 60 to 60 | 1.0 |",
        "| all | 3 |  |  | 2.5 |",
    ]


def test_tables_are_those_of_the_studies_that_have_rows_in_their_order():
    names = ("none", "interpolation", "other", "imm-in-batch-all")
    rows = [row_of(f"{name}-8th-seed1", name, 9, 1.0) for name in sorted(names)]
    found = reporting.tables_of({"main": rows, "full": [], "scarcity": []})
    assert set(found) == {"main", "induced", "hours"}
    firsts = [line.split(" | ")[0] for line in found["main"].splitlines()[2:]]
    assert firsts == ["| none", "| interpolation", "| imm-in-batch-all", "| other"]


def test_counts_have_one_line_a_bank():
    rows = [row_of(name, "imm-in-batch", 1000, 100.0) for name in "abcd"]
    banks = [(7000, None), (0, None), (7000, 20), (0, None)]
    for row, (size, target) in zip(rows, banks, strict=True):
        row["config"] |= {"bank_size": size, "bank_target": target, "min_count": 2}
        row["effective_counts"] = {
            "mean": 3.25,
            "share_alone": 0.4,
            "share_below_5": 0.6,
            "quantiles": {"10": 1.0, "25": 1.0, "50": 2.0, "75": 16.0, "90": 34.0},
        }
    rows.append(row_of("e", "none", 1000, 100.0))
    rows[-1]["config"]["bank_size"] = 0
    rows[-1]["effective_counts"] = None
    header, rule, *lines = settings_report.counts_table(rows).splitlines()
    assert header.count("|") == rule.count("|") == lines[0].count("|")
    assert lines[0] == "| 0 | 0 | 3.2 | 0.40 | 0.60 | 1 | 1 | 2 | 16 | 34 |"
    assert [line.split(" | ")[:2] for line in lines[1:]] == [
        ["| 7,000", "2"],
        ["| 7,000", "20"],
    ]


def test_kneser_ney_alone_is_scored_on_all_tokens(monkeypatch):
    corpus = load_corpus("python-docs")
    monkeypatch.setattr(n_grams, "ORDERS", (1, 2))
    monkeypatch.setattr(n_grams, "FRACTIONS", (0.1, 0.2))
    row = n_grams.measure(corpus)
    tokens = [int(len(corpus.train) * share) for share in (0.1, 0.1, 0.2, 0.2)]
    assert [cell["train_tokens"] for cell in row["cells"]] == tokens
    assert [cell["order"] for cell in row["cells"]] == [1, 2, 1, 2]
    cell = row["cells"][1]
    size = len(corpus.vocabulary)
    model = KneserNey(2, floor=cell["floor"]).fit(
        corpus.train[: cell["train_tokens"]], size
    )
    eos = corpus.vocabulary.eos_id
    log_probs = restricted_target_log_probs(model, corpus.test, prefix=eos)
    assert cell["test"] == pytest.approx(np.exp(-log_probs.mean()))
    bits = -log_probs.sum() / np.log(2) / corpus.num_bytes.test
    assert cell["test_bits_per_byte"] == pytest.approx(bits)
    lines = n_grams.n_grams_table(row).splitlines()
    first = row["cells"][0]
    assert lines[2].startswith(
        f"| {first['train_tokens']:,} | {first['valid']:.1f} / {first['test']:.1f} |"
    )
    # Order 2 is better on the validation text.
    assert lines[2].endswith(
        f"| {cell['floor']:.3f} | {cell['test_bits_per_byte']:.3f} |"
    )

"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.imm_lm import report
from experiments.imm_lm.reporting import read_n_grams, read_projection, tables_of
from experiments.imm_lm.studies import STUDIES
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows, read_studies

ABOUT = About(
    "IMM, Section 6, Tables 1 and 2",
    "Does IMM help LSTMs on Penn Treebank, and how much text is it worth?",
    "python -m experiments.imm_lm --study=main --seeds=1,2,3 --data_dir=DATA",
    "2.2 h, 2 cores",
)

_RUN = "python -m experiments.imm_lm"
_ABLATION = f"{_RUN} --study=ablation --data_dir=DATA"
_FULL = f"{_RUN} --study=full --data_dir=DATA"
_BY_AMOUNT = (ABOUT.command, f"{_RUN} --study=scarcity --data_dir=DATA", _FULL)
MADE_BY: MadeBy = {
    "tuning": f"{_RUN} --study=tuning --data_dir=DATA",
    "ablation": _ABLATION,
    "counts": _ABLATION,
    "sampler": f"{_RUN} --study=sampler --data_dir=DATA",
    "full": _FULL,
    "full-induced": _FULL,
    "scarcity": _BY_AMOUNT,
    "law": _BY_AMOUNT,
    "n-grams": f"{_RUN} --n_grams --corpus=ptb --data_dir=DATA",
    "projection": f"{_RUN} --preset=paper --project_steps=1 --data_dir=DATA",
    "hours": (),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = read_studies(folder, STUDIES, report.NEEDS)
    return tables_of(rows, read_projection(folder), read_n_grams(folder))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""

    def test(arm: str, source: str | None = None) -> str:
        return f"{_on_an_eighth(folder, arm, source):.1f}"

    def test_of_all(arm: str) -> str:
        return f"{_once(folder, 'full', arm):.1f}"

    return (
        f"Test perplexity on an eighth of the text: dropout {test('none')}, with IMM "
        f"{test('imm-in-batch-count1')}, with noising {test('noising-bigram-kn')}, "
        f"mixed with the bigram {test('none', 'same')}; the bigram of all the text: "
        f"IMM {test('imm-in-batch-all')}, mixed {test('none', 'all')}, both "
        f"{test('imm-in-batch-all', 'all')}. On all of the text: dropout "
        f"{test_of_all('none')}, with IMM {test_of_all('imm-in-batch-count1')}"
    )


def values(folder: pathlib.Path) -> dict[str, str]:
    """Returns by how much test perplexity falls, by what is done, for other pages."""
    dropout = _on_an_eighth(folder, "none")
    ratios = {
        "gain": _on_an_eighth(folder, "imm-in-batch-count1") / dropout,
        "noising": _on_an_eighth(folder, "noising-bigram-kn") / dropout,
        "gain_full": _once(folder, "full", "imm-in-batch-count1")
        / _once(folder, "full", "none"),
    }
    gains = {name: f"{round(100 * (1 - ratio))} %" for name, ratio in ratios.items()}
    return {**gains, "n_gram_of_4th": _n_gram(folder, 232_397, order=5)}


def _n_gram(folder: pathlib.Path, train_tokens: int, order: int) -> str:
    """Returns the validation / test perplexity of Kneser-Ney alone, of all tokens."""
    (cell,) = [
        cell
        for cell in Rows(folder).read("n_grams")["cells"]
        if (cell["train_tokens"], cell["order"]) == (train_tokens, order)
    ]
    return f"{cell['valid']:.1f} / {cell['test']:.1f}"


def _on_an_eighth(folder: pathlib.Path, arm: str, source: str | None = None) -> float:
    """Returns the mean test perplexity of the study `main`, mixed if with a source."""
    rows = report.grouped(Rows(folder, "main").read_all(report.NEEDS))[f"{arm}-8th"]
    found = [
        row["interpolation"][source] if source else row["perplexity"] for row in rows
    ]
    return float(np.mean([each["test"] for each in found]))


def _once(folder: pathlib.Path, study: str, arm: str) -> float:
    row = Rows(folder, study).read(f"{arm}-seed1", report.NEEDS)
    return float(row["perplexity"]["test"])

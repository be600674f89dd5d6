"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.imm_lm import report
from experiments.imm_lm.reporting import read_projection, tables_of
from experiments.imm_lm.studies import STUDIES
from experiments.kit.about import About
from experiments.kit.rows import Rows, read_studies

ABOUT = About(
    "IMM, Section 6, Tables 1 and 2",
    "Does IMM help LSTMs on Penn Treebank, and how much text is it worth?",
    "python -m experiments.imm_lm --study=main --seeds=1,2,3 --data_dir=DATA",
    "2.2 h, 2 cores",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = read_studies(folder, STUDIES, report.NEEDS)
    return tables_of(rows, read_projection(folder))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder, "main").read_all(report.NEEDS)
    full = Rows(folder, "full")

    def test(arm: str, source: str | None = None) -> str:
        members = report.grouped(rows)[f"{arm}-8th"]
        found = [
            row["interpolation"][source] if source else row["perplexity"]
            for row in members
        ]
        return f"{np.mean([each['test'] for each in found]):.1f}"

    def test_of_all(arm: str) -> str:
        return f"{full.read(f'{arm}-seed1')['perplexity']['test']:.1f}"

    return (
        f"Test perplexity on an eighth of the text: dropout {test('none')}, with IMM "
        f"{test('imm-in-batch-count1')}, with noising {test('noising-bigram-kn')}, "
        f"mixed with the bigram {test('none', 'same')}; the bigram of all the text: "
        f"IMM {test('imm-in-batch-all')}, mixed {test('none', 'all')}, both "
        f"{test('imm-in-batch-all', 'all')}. On all of the text: dropout "
        f"{test_of_all('none')}, with IMM {test_of_all('imm-in-batch-count1')}"
    )

"""The page that says where each equation is: every name, test and study exists."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

from docs.papers import read_rows
from tests.compatibility.names import resolve

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "PAPERS.md").read_text("utf-8")
_NAME = re.compile(r"`((?:rlm_tf|experiments)(?:\.\w+)+)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_FOLDER = re.compile(r"\[(\w+)\]\((experiments/\w+)\)")


@pytest.mark.parametrize("name", sorted(set(_NAME.findall(PAGE))))
def test_names_resolve(name):
    resolve(name)


def test_tests_exist():
    named = set(_TEST.findall(PAGE))
    assert named
    # What looks like a test and is none of the above would go unchecked.
    assert PAGE.count("`tests/") == len(_TEST.findall(PAGE))
    for path, test in sorted(named):
        assert (ROOT / path).is_file(), path
        if test:
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
            assert test in defined, f"{path}::{test}"


def test_links_lead_somewhere():
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        path, _, anchor = target.partition("#")
        assert (ROOT / path).exists(), target
        assert path or anchor in anchors, target
    for name, folder in _FOLDER.findall(PAGE):
        assert folder == f"experiments/{name}"


def test_every_study_is_named():
    studies = {path.parent.name for path in ROOT.glob("experiments/*/page.py")}
    found = {name for name, _ in _FOLDER.findall(PAGE)}
    # Two are of no document.
    assert studies - {"benchmark", "own_text"} <= found <= studies


@pytest.mark.parametrize(
    ("equation", "name", "study"),
    [
        ("(7)", "rlm_tf.objectives.imm.induced_log_probs", "imm_consistency"),
        ("(16)", "rlm_tf.objectives.imm.noising_cross_entropy", "imm_consistency"),
        ("(14), (21)", "rlm_tf.models.SampledContexts", "imm_lm"),
        ("(2.2)", "rlm_tf.layers.MogrifierLSTMCell", "mogrifier_lm"),
        ("(5.8)", "rlm_tf.objectives.monte_carlo.iwae", "mi_vae"),
    ],
)
def test_what_readers_ask_for_is_where_it_was(equation, name, study):
    """Equations whose place was looked up by hand."""
    found = [row for row in read_rows(PAGE) if row.equation == equation]
    assert any(
        name in row.named and f"experiments/{study}" in row.studies for row in found
    )


def test_rows_have_five_columns():
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert rows
    for row in rows:
        assert row.count("|") == 6, row

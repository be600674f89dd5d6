"""Sentences of two kinds, tables of them and reports, for tests of commands."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

from rlm_tf.commands.encoders.examples import Examples
from rlm_tf.data import LabelledTexts

WORDS = {
    "sea": ["ship", "wave", "sail", "harbour", "captain"],
    "wood": ["tree", "leaf", "forest", "root", "branch"],
}
_OTHERS = ["the", "a", "old", "saw", "near", "went", "and", "small", "with", "to"]


def sentence(rng: np.random.Generator, kind: str) -> str:
    """Returns a sentence with a word of its kind."""
    words = rng.choice(_OTHERS, 6)
    words[rng.integers(6)] = rng.choice(WORDS[kind])
    return " ".join(words)


def report(folder: pathlib.Path) -> dict[str, Any]:
    """Returns what a command has reported."""
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def parts(
    labels: Any, texts: list[str], names: tuple[str, ...] = ("a", "b")
) -> Examples:
    """Returns examples of which all parts are the same texts."""
    found = LabelledTexts(list(texts), np.array(labels), names)
    return Examples(found, found, found, [])

"""What a study says about itself for its page and for the index of all studies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

# Of every study's page, in this order.
SECTIONS = (
    "Question",
    "Command",
    "Settings",
    "Deviations from the paper",
    "Results",
    "What lost",
    "Cost",
)

# What a page may define as `MADE_BY`: by a table's name the command that makes its
# rows, but for folders, or several; none: the commands of all studies of the page.
MadeBy: TypeAlias = Mapping[str, str | tuple[str, ...]]


class About(NamedTuple):
    """A study's line in the index.

    Attributes:
        paper: The document and its section, figure or table.
        question: What is asked, in a few words.
        command: What makes all its rows, or most of them, but for folders.
        time: What that takes, and on what.
    """

    paper: str
    question: str
    command: str
    time: str

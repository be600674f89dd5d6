"""The sets of documents that studies of seed words have, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class SeedSet(NamedTuple):
    """A set of documents and what the thesis says of it.

    Attributes:
        parts: Names of `load_documents`, put together.
        seeds: Of `load_seeds`.
        title: Of the thesis.
        published: Table 3.1: documents, classes, labelled, noise in percent, median and
            deviation of the length, and of class-indicative words.
    """

    parts: tuple[str, ...]
    seeds: str
    title: str
    published: tuple[int, int, int, float, str, str]


SETS: Mapping[str, SeedSet] = {
    "ag-news": SeedSet(
        ("ag-news-test", "ag-news-sample"),
        "ag-news",
        "AGNews",
        (120_000, 4, 32_359, 16.26, "39 (6)", "27 (4)"),
    ),
    # Of training texts alone, as the thesis has them.
    "ag-news-sample": SeedSet(
        ("ag-news-sample",),
        "ag-news",
        "AGNews",
        (120_000, 4, 32_359, 16.26, "39 (6)", "27 (4)"),
    ),
    "20news-coarse": SeedSet(
        ("20newsgroups-coarse",),
        "20newsgroups-coarse",
        "20News-Coarse",
        (17_871, 5, 7_671, 12.50, "286 (136)", "140 (65)"),
    ),
    "20news-fine": SeedSet(
        ("20newsgroups-fine",),
        "20newsgroups-fine",
        "20News-Fine",
        (17_871, 17, 10_455, 25.67, "257 (120)", "129 (58)"),
    ),
    "rotten-tomatoes": SeedSet(
        ("rotten-tomatoes",),
        "rotten-tomatoes",
        "Rotten-Tomatoes",
        (10_662, 2, 990, 28.38, "26 (8)", "13 (4)"),
    ),
    # Three seeds of each class.
    "ag-news-westclass": SeedSet(
        ("ag-news-test", "ag-news-sample"),
        "ag-news-westclass",
        "AGNews",
        (120_000, 4, 32_359, 16.26, "39 (6)", "27 (4)"),
    ),
    # Of files that nobody else may hand on, or that are large.
    "ag-news-train": SeedSet(
        ("ag-news",),
        "ag-news",
        "AGNews",
        (120_000, 4, 32_359, 16.26, "39 (6)", "27 (4)"),
    ),
    "nyt-coarse": SeedSet(
        ("nyt-coarse",),
        "nyt-coarse",
        "NYT-Coarse",
        (13_081, 5, 9_460, 11.47, "922 (222)", "462 (105)"),
    ),
    "nyt-fine": SeedSet(
        ("nyt-fine",),
        "nyt-fine",
        "NYT-Fine",
        (13_081, 26, 8_229, 31.80, "940 (214)", "467 (100)"),
    ),
}
_OF_ONES_OWN = ("ag-news-train", "nyt-coarse", "nyt-fine")
_FEWER_SEEDS = ("ag-news-westclass",)
HERE = tuple(name for name in SETS if name not in (*_OF_ONES_OWN, *_FEWER_SEEDS))
# Table 3.1.
PUBLISHED = (
    *("ag-news-train", "20news-coarse", "nyt-coarse", "20news-fine", "nyt-fine"),
    "rotten-tomatoes",
)
# Made up, for smoke tests: no data is needed.
PLANTED = "planted"
SET_NAMES = (*SETS, PLANTED)

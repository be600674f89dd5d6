"""Labels from votes of others: matrices as Snorkel and WRENCH have them."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_option
from rlm_tf.labelling.seed_rule import Matches, SeedRule

VOTE_TIES = ("abstain", "first")


class Votes(NamedTuple):
    """Documents and what functions say of them.

    Attributes:
        texts: The documents.
        votes: int `[N, F]`, -1 where a function says nothing.
        labels: int `[N]`, true classes, -1 of documents without.
    """

    texts: list[str]
    votes: np.ndarray
    labels: np.ndarray


def seed_votes(rule: SeedRule, matches: Matches) -> np.ndarray:
    """Returns a vote of each seed, int `[N, S]`: its class where it is, else -1."""
    classes = np.array([seed.class_index for seed in rule.seeds])
    return np.where(matches.hits.toarray() > 0, classes, -1)


def majority_vote(
    votes: npt.ArrayLike, num_classes: int, *, ties: str = "abstain"
) -> np.ndarray:
    """Returns the class that has most votes, int `[N]`, -1 of none.

    Args:
        votes: int `[N, F]`, -1 where a function says nothing; `[N]`: labels, a column.
        num_classes: C.
        ties: "abstain": no label; "first": the first class of those with most.

    Raises:
        ValueError: If votes are no classes, or `ties` is unknown.
    """
    name = "majority_vote"
    check_option(name, "ties", ties, VOTE_TIES)
    check_integer(name, "num_classes", num_classes, 2)
    given = np.asarray(votes)
    if given.ndim == 1:
        given = given[:, np.newaxis]
    whole = np.issubdtype(given.dtype, np.integer)
    if (
        given.ndim != 2
        or not whole
        or not ((given >= -1) & (given < num_classes)).all()
    ):
        raise ValueError(
            f"{name}: `votes` must be [N, F], -1 or one of the classes 0 to "
            f"{num_classes - 1}, found {given.dtype} of shape {list(given.shape)}"
            + (f", {given.min()} to {given.max()}." if given.size and whole else ".")
        )
    counts = np.stack([(given == c).sum(axis=1) for c in range(num_classes)], axis=1)
    most = counts.max(axis=1)
    found = np.where(most > 0, counts.argmax(axis=1), -1)
    if ties == "abstain":
        found[(counts == most[:, np.newaxis]).sum(axis=1) > 1] = -1
    return found


def read_wrench(path: str | os.PathLike[str]) -> Votes:
    """Reads a file of WRENCH (Zhang et al. 2021, arXiv 2109.11377).

    A JSON object of documents by their number, each with `weak_labels`, a list of
    votes, -1 where a function says nothing, `data.text`, and perhaps `label`.

    Args:
        path: Of the file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is another; names the document.
    """
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from None
    if not isinstance(found, dict) or not found:
        raise ValueError(
            f"{path}: expected documents by their number, found "
            f"{type(found).__name__ if not isinstance(found, dict) else 'none'}."
        )
    keys = sorted(found, key=lambda key: (len(key), key))
    rows = [_row(path, key, found[key]) for key in keys]
    lengths = {len(row[1]) for row in rows}
    if len(lengths) > 1:
        raise ValueError(
            f"{path}: documents have {min(lengths)} to {max(lengths)} weak labels; "
            "expected as many of each."
        )
    texts, votes, labels = zip(*rows, strict=True)
    return Votes(list(texts), np.array(votes, np.int64), np.array(labels, np.int64))


def _row(path: Any, key: str, row: Any) -> tuple[str, Sequence[int], int]:
    try:
        text, votes = row["data"]["text"], row["weak_labels"]
        label = row.get("label", -1)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{path}: document {key!r} needs `weak_labels` and `data.text`."
        ) from None
    whole = all(type(vote) is int for vote in (*votes, label))
    if not isinstance(text, str) or not whole:
        raise ValueError(
            f"{path}: document {key!r}: `weak_labels` and `label` must be integers, "
            "`data.text` a text."
        )
    return text, votes, label

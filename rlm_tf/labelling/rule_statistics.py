"""What a rule of seed words does to a set of documents, in numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlm_tf.labelling.seed_rule import Matches, SeedRule
from rlm_tf.labelling.seed_tokens import unlowered_published_tokens, words_of


class Spread(NamedTuple):
    """A median, and the median distance to it.

    Attributes:
        median: Of all.
        deviation: Median of the absolute differences, not scaled.
    """

    median: float
    deviation: float


class RuleStatistics(NamedTuple):
    """Numbers of Table 3.1 of Dong (2025).

    Attributes:
        documents: All of them.
        labelled: Those with a label.
        tied: Those in which several classes have most, labelled or not.
        coverage: Labelled, as a share of all.
        noise: Share of the labelled whose label is wrong; None: no truth was given.
        transitions: int64 `[K, K]`, labelled documents by true class and label; None
            likewise.
        length: Words between white space, of the labelled.
        indicative: Words that are no stop words, of the labelled, seeds among them.
    """

    documents: int
    labelled: int
    tied: int
    coverage: float
    noise: float | None
    transitions: np.ndarray | None
    length: Spread
    indicative: Spread


class SeedStatistics(NamedTuple):
    """Numbers of a seed, shares of all documents but for `labels_alone`.

    Attributes:
        text: The seed.
        class_name: Of its class.
        coverage: Documents that have it.
        overlaps: Documents that have it and another seed.
        conflicts: Documents that have it and a seed of another class.
        labels_alone: How many documents have it and no other seed.
        accuracy: Of documents with it, the share that is of its class; None: no truth
            was given, or no document has it.
    """

    text: str
    class_name: str
    coverage: float
    overlaps: float
    conflicts: float
    labels_alone: int
    accuracy: float | None


def rule_statistics(
    rule: SeedRule,
    texts: Sequence[str],
    matches: Matches,
    true_labels: npt.ArrayLike | None = None,
    *,
    stop_words: Collection[str] | None = None,
) -> RuleStatistics:
    """Returns what a rule does to documents.

    Args:
        rule: The rule.
        texts: The documents.
        matches: What the rule says of them.
        true_labels: int `[N]`, places in `rule.class_names`; None: not known.
        stop_words: Words that tell nothing; None: the 318 of scikit-learn. Under
            `published` they are compared before words are put in lower case.

    Raises:
        ValueError: If there are not as many texts or labels as matches.
    """
    labels = matches.labels
    if len(texts) != len(labels):
        raise ValueError(
            f"rule_statistics: {len(labels)} matches of {len(texts)} texts."
        )
    known = np.flatnonzero(labels >= 0)
    own = [texts[row] for row in known.tolist()]
    words = frozenset(english_stop_words() if stop_words is None else stop_words)
    cut = words_of if rule.tokenisation == "words" else unlowered_published_tokens
    noise = transitions = None
    if true_labels is not None:
        true = _checked(true_labels, len(labels), len(rule.class_names))
        transitions = np.zeros([len(rule.class_names)] * 2, np.int64)
        np.add.at(transitions, (true[known], labels[known]), 1)
        if len(known):
            noise = float(1 - np.trace(transitions) / len(known))
    return RuleStatistics(
        documents=len(labels),
        labelled=len(known),
        tied=int(matches.tied.sum()),
        coverage=len(known) / max(len(labels), 1),
        noise=noise,
        transitions=transitions,
        length=spread([len(text.split()) for text in own]),
        indicative=spread(
            [sum(word not in words for word in cut(text)) for text in own]
        ),
    )


def seed_statistics(
    rule: SeedRule, matches: Matches, true_labels: npt.ArrayLike | None = None
) -> list[SeedStatistics]:
    """Returns the numbers of each seed, in the order of `rule.seeds`.

    Coverage, overlaps and conflicts are those of Snorkel's `LFAnalysis` of one function
    a seed.

    Args:
        rule: The rule.
        matches: What the rule says of documents.
        true_labels: int `[N]`; None: not known.

    Raises:
        ValueError: If there are not as many labels as matches.
    """
    has = matches.hits > 0
    number = max(has.shape[0], 1)
    classes = np.array([seed.class_index for seed in rule.seeds])
    by_class = np.zeros([len(classes), len(rule.class_names)], np.int64)
    by_class[np.arange(len(classes)), classes] = 1
    # Of each document, how many seeds it has, and of how many classes.
    seeds_in = np.asarray(has.sum(axis=1)).ravel()
    classes_in = np.asarray((has @ by_class > 0).sum(axis=1)).ravel()
    true = None
    if true_labels is not None:
        true = _checked(true_labels, has.shape[0], len(rule.class_names))
    columns = has.tocsc()
    found = []
    for column, seed in enumerate(rule.seeds):
        first, last = columns.indptr[column : column + 2]
        rows = columns.indices[first:last]
        right = None
        if true is not None and len(rows):
            right = float(np.mean(true[rows] == seed.class_index))
        found.append(
            SeedStatistics(
                text=seed.text,
                class_name=rule.class_names[seed.class_index],
                coverage=len(rows) / number,
                overlaps=float(np.sum(seeds_in[rows] > 1)) / number,
                conflicts=float(np.sum(classes_in[rows] > 1)) / number,
                labels_alone=int(np.sum(seeds_in[rows] == 1)),
                accuracy=right,
            )
        )
    return found


def spread(values: npt.ArrayLike) -> Spread:
    """Returns the median of numbers and that of their distances to it; nan of none."""
    own = np.asarray(values, np.float64)
    if not own.size:
        return Spread(float("nan"), float("nan"))
    median = np.median(own)
    return Spread(float(median), float(np.median(np.abs(own - median))))


def _checked(labels: npt.ArrayLike, number: int, classes: int) -> np.ndarray:
    true = np.asarray(labels)
    fits = true.shape == (number,) and np.all((true >= 0) & (true < classes))
    if not fits:
        raise ValueError(
            f"true labels must be {number} of the classes 0 to {classes - 1}, found "
            f"{true.dtype} of shape {list(true.shape)}."
        )
    return true


def english_stop_words() -> Collection[str]:
    """Returns the 318 of scikit-learn."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return ENGLISH_STOP_WORDS

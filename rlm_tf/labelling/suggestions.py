"""Words that may be good seeds."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer
from rlm_tf.labelling.document_counts import document_counts
from rlm_tf.labelling.rule_statistics import english_stop_words
from rlm_tf.labelling.seed_rule import SeedRule
from rlm_tf.labelling.word_list import PADDING, UNKNOWN, WordList

# Documents that a word is as sure to be alike in all classes as if it were in so many.
_PRIOR = 10.0


class SuggestedSeed(NamedTuple):
    """A word that tells a class.

    Attributes:
        text: The word.
        class_name: Of the class.
        score: Its log-odds of being in documents of the class, in standard deviations.
        documents: That have it.
        new: Of these, those without a label.
    """

    text: str
    class_name: str
    score: float
    documents: int
    new: int


def suggest_seeds(
    rule: SeedRule,
    words: WordList,
    tokens: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    labelled: npt.ArrayLike | None = None,
    most: int = 20,
    min_documents: int = 5,
    stop_words: Collection[str] | None = None,
) -> list[SuggestedSeed]:
    """Returns words that are in documents of one class more than in all others'.

    By log-odds with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008) of
    numbers of documents, whose prior is the word's share of all; a seed of any class is
    not suggested, nor a stop word or a number.

    Args:
        rule: Of the seeds that there are.
        words: What ids of tokens are.
        tokens: int `[N, T]`, of `WordList.rows`.
        labels: int `[N]`, what documents are taken to be (of the rule, or of a
            classifier); -1: nothing.
        labelled: bool `[N]`, documents that seeds label already; None: `labels >= 0`.
        most: Words of a class, at most.
        min_documents: That a word must be in.
        stop_words: Words that tell nothing; None: the 318 of scikit-learn.

    Returns:
        Of each class the best first, classes in the rule's order.

    Raises:
        ValueError: If shapes do not fit, or a number is out of range.
    """
    name = "suggest_seeds"
    check_integer(name, "most", most, 1)
    check_integer(name, "min_documents", min_documents, 1)
    rows, own = np.asarray(tokens), np.asarray(labels)
    if rows.ndim != 2 or own.shape != rows.shape[:1]:
        raise ValueError(
            f"{name}: `tokens` must be [N, T] and `labels` [N], found "
            f"{list(rows.shape)} and {list(own.shape)}."
        )
    has = own >= 0 if labelled is None else np.asarray(labelled, bool)
    if has.shape != own.shape:
        raise ValueError(f"{name}: `labelled` must be {list(own.shape)}.")
    classes = len(rule.class_names)
    # By class, that of no class last, and by whether seeds label the document.
    groups = 2 * np.where(own < 0, classes, own) + has
    counts = document_counts(rows, len(words), groups, 2 * (classes + 1))
    counts[:, [PADDING, UNKNOWN]] = 0
    counts = counts.reshape(classes + 1, 2, len(words))
    documents, new = counts.sum(axis=(0, 1)), counts[:, 0].sum(axis=0)
    stops = english_stop_words() if stop_words is None else stop_words
    allowed = (documents >= min_documents) & _may_be_seeds(rule, words, stops)
    of_class = counts[:classes].sum(axis=1).astype(np.float64)
    everywhere = np.sum(of_class, axis=0)
    found = []
    for number, class_name in enumerate(rule.class_names):
        scores = _log_odds(of_class[number], everywhere - of_class[number])
        order = np.argsort(-np.where(allowed, scores, -np.inf), kind="stable")[:most]
        found += [
            SuggestedSeed(
                words.words[place - _first(words)],
                class_name,
                float(scores[place]),
                int(documents[place]),
                int(new[place]),
            )
            for place in order.tolist()
            if allowed[place] and scores[place] > 0
        ]
    return found


def _first(words: WordList) -> int:
    return len(words) - len(words.words)


def _may_be_seeds(
    rule: SeedRule, words: WordList, stop_words: Collection[str]
) -> np.ndarray:
    """Returns which ids are words that no seed matches and that tell something."""
    allowed = np.zeros(len(words), bool)
    for place, word in enumerate(words.words, start=_first(words)):
        is_seed = bool(rule.occurrences([word]))
        allowed[place] = (
            not is_seed
            and word not in stop_words
            and not word.isdigit()
            and len(word) > 1
        )
    allowed[[PADDING, UNKNOWN]] = False
    return allowed


def _log_odds(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns z-scores of the difference of log-odds, the prior the shares in all."""
    everything = own + others
    prior = _PRIOR * everything / max(everything.sum(), 1.0) * len(everything)
    # A word that is nowhere has no prior; it has no score either.
    prior = np.maximum(prior, 1e-9)
    total = prior.sum()

    def odds(counts: np.ndarray) -> np.ndarray:
        rest = counts.sum() + total - counts - prior
        return np.log(counts + prior) - np.log(rest)

    spread = np.sqrt(1 / (own + prior) + 1 / (others + prior))
    return np.where(everything > 0, (odds(own) - odds(others)) / spread, 0.0)

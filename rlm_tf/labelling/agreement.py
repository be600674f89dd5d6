"""How often seeds that meet in a document agree, and what that says of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlm_tf.labelling.seed_rule import Matches, Seed, SeedRule


class SeedAgreement(NamedTuple):
    """Documents with two seeds, or more, that do not overlap with each other's words.

    Attributes:
        documents: How many there are.
        agreement: Mean share of their pairs of seeds that are of one class; nan if
            there is no document.
        accuracy: How often one seed is right, were seeds wrong independently and every
            wrong class as likely as another; nan likewise.
    """

    documents: int
    agreement: float
    accuracy: float


def seed_agreement(rule: SeedRule, matches: Matches) -> SeedAgreement:
    """Estimates the accuracy of seeds from how they agree, without a true label.

    Two seeds of a document, each right with probability a, are of one class with
    probability a^2 + (1 - a)^2 / (C - 1), which is solved for a (Dawid and Skene 1979
    with one rate for all). Seeds of a class at one place, such as `game*` and `games`,
    are one, a seed of two classes is two that do not agree. Seeds that go together for
    another reason than the class make it too kind, documents about two things too
    harsh.

    Args:
        rule: The rule.
        matches: What it says of documents.
    """
    classes = len(rule.class_names)
    has = (matches.hits > 0).astype(np.int64)
    of_class = np.zeros([len(rule.seeds), classes], np.int64)
    for number, seed in enumerate(rule.seeds):
        # Where it is, what covers it is, too.
        if not any(_covers(other, seed) for other in rule.seeds):
            of_class[number, seed.class_index] = 1
    counts = np.asarray(has @ of_class)
    seeds = counts.sum(axis=1)
    several = seeds >= 2
    documents = int(several.sum())
    if not documents:
        return SeedAgreement(0, math.nan, math.nan)
    counts, seeds = counts[several], seeds[several]
    same = (counts * (counts - 1)).sum(axis=1) / (seeds * (seeds - 1))
    agreement = float(same.mean())
    return SeedAgreement(documents, agreement, _accuracy(agreement, classes))


def _covers(other: Seed, seed: Seed) -> bool:
    """Whether another seed of the class is wherever a seed is."""
    if other is seed or not other.is_prefix or not seed.tokens:
        return False
    if len(other.tokens) != len(seed.tokens) or other.class_index != seed.class_index:
        return False
    is_start = seed.tokens[-1].startswith(other.tokens[-1])
    return is_start and other.tokens[:-1] == seed.tokens[:-1]


def _accuracy(agreement: float, classes: int) -> float:
    """Returns the larger root of a^2 + (1 - a)^2 / (C - 1) = agreement.

    Where seeds agree less than chance there is none: 1 / C.
    """
    within = 1 - classes * (1 - agreement * (classes - 1))
    return (1 + math.sqrt(max(within, 0.0))) / classes

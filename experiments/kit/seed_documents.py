"""Documents, true classes and seed words of studies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from experiments.kit.seed_list import PLANTED, SETS
from rlm_tf.data import load_documents, load_seeds
from rlm_tf.labelling import SeedRule


class SeedDocuments(NamedTuple):
    """A set of documents.

    Attributes:
        texts: The documents.
        labels: int `[N]`, true classes.
        class_names: Sorted.
        seeds: By class.
    """

    texts: list[str]
    labels: np.ndarray
    class_names: tuple[str, ...]
    seeds: dict[str, list[str]]

    def rule(self, tokenisation: Any = "words", ties: Any = "abstain") -> SeedRule:
        """Returns the rule of the seeds."""
        return SeedRule(self.seeds, tokenisation=tokenisation, ties=ties)


def read_documents(name: str, *, view: str = "subject+body") -> SeedDocuments:
    """Reads a set of `seed_list.SET_NAMES`.

    Args:
        name: Of the set.
        view: Of 20 Newsgroups, see `load_documents`.
    """
    if name == PLANTED:
        return planted()
    own = SETS[name]
    texts: list[str] = []
    labels: list[np.ndarray] = []
    names: tuple[str, ...] = ()
    for part in own.parts:
        found = load_documents(part, view=view)
        texts += found.texts
        labels.append(found.labels)
        names = found.class_names
    seeds = load_seeds(own.seeds)
    if tuple(sorted(seeds)) != names:
        raise ValueError(
            f"{name}: seeds are of the classes {', '.join(sorted(seeds))}, documents "
            f"of {', '.join(names)}."
        )
    return SeedDocuments(texts, np.concatenate(labels), names, seeds)


def planted(
    number: int = 400, wrong: float = 0.2, seeded: float = 0.6, seed: int = 0
) -> SeedDocuments:
    """Makes documents of three classes whose seeds are wrong at a known rate.

    Args:
        number: Of documents.
        wrong: Share of the documents with a seed that has another class'.
        seeded: Share that has one.
        seed: Of the draw.
    """
    rng = np.random.default_rng(seed)
    names = ("river", "stone", "wind")
    labels = rng.integers(len(names), size=number)
    texts = []
    for label in labels.tolist():
        own = [f"{names[label]}word{i}" for i in rng.integers(12, size=5)]
        words = [*own, *(f"any{i}" for i in rng.integers(60, size=8))]
        if rng.random() < seeded:
            shift = rng.integers(1, len(names)) if rng.random() < wrong else 0
            words.append(f"{names[(label + shift) % len(names)]}seed{rng.integers(2)}")
        rng.shuffle(words)
        texts.append(" ".join(words))
    seeds = {name: [f"{name}seed{i}" for i in range(2)] for name in names}
    return SeedDocuments(texts, labels, names, seeds)

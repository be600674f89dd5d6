"""A source of words whose exact conditionals, marginals and bigram are known."""

from __future__ import annotations

import numpy as np


class ClassSource:
    """Words of Zipf-like frequency; the next depends on one word and a class.

    `P(w | u, v) = A(group(w) | class(u), v) B(w | group(w))`: the short context is the
    last word v, and of the extended context, the word u before it, only the class
    matters. Few parameters, so that long training can find them, yet a vocabulary
    large enough for rare words.

    Args:
        vocabulary_size: V.
        num_classes: C, classes of extended contexts; word u has class `u % C`.
        num_groups: G, groups of next words; word w has group `w % G`.
        concentration: Of the Dirichlet distribution of `A(. | c, v)`; small is peaked.
        seed: Of the source.

    Attributes:
        probs: `P` float64 `[C, V, V]`, indexed by class(u), v, w.
        context_probs: Stationary `pi(class(u), v)` `[C, V]`.
        bigram: `P_bar(w | v)` `[V, V]`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_classes: int,
        num_groups: int,
        concentration: float,
        seed: int,
    ):
        self._rng = np.random.default_rng(seed)
        words = np.arange(vocabulary_size)
        self.num_classes = num_classes
        self.groups = words % num_groups
        within = 1.0 / (1.0 + words)
        within /= np.bincount(self.groups, within)[self.groups]
        self._choices = self._rng.dirichlet(
            np.full(num_groups, concentration), size=(num_classes, vocabulary_size)
        )
        self.probs = self._choices[:, :, self.groups] * within
        # Words of group g fill (g, g + 1) in proportion to their probability.
        self._order = np.argsort(self.groups, kind="stable")
        self._ends = np.cumsum(within[self._order])
        classes = np.eye(num_classes)[words % num_classes]
        pairs = np.full((num_classes, vocabulary_size), 1.0)
        for _ in range(200):
            pairs /= pairs.sum()
            joint = np.einsum("cv,cvw->vw", pairs, self.probs)
            pairs = classes.T @ joint
        self.context_probs = pairs
        self.bigram = joint / joint.sum(axis=1, keepdims=True)

    def windows(self, number: int, length: int) -> np.ndarray:
        """Returns int32 `[number, length]`, windows of independent streams."""
        u = np.zeros(number, np.int64)
        v = self._rng.integers(self.probs.shape[1], size=number)
        columns = []
        for step in range(20 + length):
            cumulative = np.cumsum(self._choices[u % self.num_classes, v], axis=1)
            draw = self._rng.uniform(size=(number, 1)) * cumulative[:, -1:]
            group = np.sum(cumulative < draw, axis=1)
            place = np.searchsorted(self._ends, group + self._rng.uniform(size=number))
            u, v = v, self._order[np.minimum(place, len(self._order) - 1)]
            if step >= 20:
                columns.append(v)
        return np.stack(columns, axis=1).astype(np.int32)

    def kl_divergence(self, probs: np.ndarray) -> float:
        """Returns `KL(P || Q)` in nats, averaged over contexts; `probs` `[C, V, V]`."""
        log_ratio = np.log(self.probs) - np.log(probs)
        return float(
            np.sum(self.context_probs * np.sum(self.probs * log_ratio, axis=-1))
        )

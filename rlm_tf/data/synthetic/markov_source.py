"""A Markov chain of tokens, of which the mutual information of segments is known."""

from __future__ import annotations

import bisect

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer


class MarkovSource:
    """Tokens that depend on the one before alone, from the stationary distribution.

    Two segments with `gap` tokens between them share what the last token of the first
    and the first token of the second share, however long they are.

    Args:
        transitions: P, `[V, V]`, row i: the probabilities of what follows token i.

    Attributes:
        transitions: P, float64.
        stationary: pi = pi P, float64 `[V]`.

    Raises:
        ValueError: If P is not square, has a row that is no distribution, or more than
            one stationary distribution.
    """

    def __init__(self, transitions: npt.ArrayLike) -> None:
        matrix = np.array(transitions, np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise ValueError(
                "MarkovSource: `transitions` must be a square matrix, found shape "
                f"{list(matrix.shape)}."
            )
        sums = matrix.sum(axis=1)
        if not (np.all(matrix >= 0) and np.allclose(sums, 1.0, rtol=0, atol=1e-6)):
            raise ValueError(
                "MarkovSource: each row of `transitions` must be probabilities that "
                f"sum to 1; the sums are {np.array2string(sums, threshold=8)}, the "
                f"least entry {matrix.min():g}."
            )
        self.transitions = matrix / sums[:, np.newaxis]
        self.stationary = _stationary(self.transitions)

    def sample(self, length: int, seed: int) -> np.ndarray:
        """Returns int32 `[length]`, a function of the seed.

        Raises:
            ValueError: If `length` is not positive or `seed` negative.
        """
        check_integer("MarkovSource.sample", "length", length, 1)
        check_integer("MarkovSource.sample", "seed", seed, 0)
        uniforms = np.random.default_rng(seed).uniform(size=length).tolist()
        # Searched up to the last but one: sums may end a rounding error below 1.
        sums = np.cumsum(self.transitions, axis=1)[:, :-1].tolist()
        token = bisect.bisect_right(np.cumsum(self.stationary)[:-1], uniforms[0])
        tokens = np.empty(length, np.int32)
        tokens[0] = token
        for t in range(1, length):
            token = bisect.bisect_right(sums[token], uniforms[t])
            tokens[t] = token
        return tokens

    def information(self, gap: int) -> float:
        """Returns I(t_0; t_(gap + 1)) in nats.

        Args:
            gap: Tokens between the two segments.

        Raises:
            ValueError: If `gap` is negative.
        """
        check_integer("MarkovSource.information", "gap", gap, 0)
        later = np.linalg.matrix_power(self.transitions, gap + 1)
        joint = self.stationary[:, np.newaxis] * later
        product = np.outer(self.stationary, self.stationary)
        # What joint rounding errors reach, nothing can reach.
        possible = (joint > 0) & (product > 0)
        ratios = joint[possible] / product[possible]
        return float(np.sum(joint[possible] * np.log(ratios)))

    def entropy_rate(self) -> float:
        """Returns the nats a token, H(t_1 | t_0), that no model goes below."""
        positive = np.where(self.transitions > 0, self.transitions, 1.0)
        rows = -np.sum(self.transitions * np.log(positive), axis=1)
        return float(self.stationary @ rows)


def _stationary(transitions: np.ndarray) -> np.ndarray:
    """Solves pi P = pi, sum pi = 1."""
    size = len(transitions)
    equations = np.concatenate([transitions.T - np.eye(size), np.ones((1, size))])
    if np.linalg.matrix_rank(equations[:-1]) < size - 1:
        raise ValueError(
            "MarkovSource: `transitions` must have one stationary distribution; found "
            "tokens that never lead to each other."
        )
    target = np.zeros(size + 1)
    target[-1] = 1.0
    solution = np.linalg.lstsq(equations, target, rcond=None)[0]
    # Tokens that are left for good have rounding errors here.
    solution[solution < size * np.finfo(np.float64).eps] = 0.0
    return solution / solution.sum()

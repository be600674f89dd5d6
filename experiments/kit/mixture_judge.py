"""Scores of language models alone and mixed with an n-gram of the same text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from experiments.kit import run_files
from rlm_tf import evaluation
from rlm_tf.data import Corpus
from rlm_tf.restricted import KneserNey

SPLITS = ("valid", "test")
# Held-out texts are read in so many rows, in windows of so many tokens.
_ROWS, _WINDOW = 10, 70

# Of each token of a split, in nats.
LogProbs = Mapping[str, np.ndarray]


class MixtureJudge:
    """Judges language models, all tokens of valid and test text.

    The n-gram has a floor, and the mixture a weight, that are best on validation text.

    Args:
        corpus: The corpus.
        text: What the n-gram counts.
        order: Of the n-gram.
    """

    def __init__(self, corpus: Corpus, text: np.ndarray, order: int = 5) -> None:
        self.corpus = corpus
        self.n_gram = KneserNey(order).fit(text, len(corpus.vocabulary))
        self.n_gram_log_probs = self.restricted_log_probs(self.n_gram)

    def restricted_log_probs(self, n_gram: KneserNey) -> LogProbs:
        """Returns what an n-gram with a floor gives each token."""
        prefix = self.corpus.vocabulary.eos_id
        floor = evaluation.tune_floor(n_gram, self.corpus.valid, prefix=prefix)
        floored = n_gram.with_floor(floor)
        return {
            split: evaluation.restricted_target_log_probs(
                floored, getattr(self.corpus, split), prefix=prefix
            )
            for split in SPLITS
        }

    def log_probs(self, model: keras.Model) -> LogProbs:
        """Returns what a model gives each token."""
        return {
            split: evaluation.target_log_probs(
                model,
                getattr(self.corpus, split),
                _ROWS,
                _WINDOW,
                prefix=self.corpus.vocabulary.eos_id,
            )
            for split in SPLITS
        }

    def scores(self, model: keras.Model) -> dict[str, Any]:
        """Returns `scores_of` a model."""
        return self.scores_of(self.log_probs(model))

    def scores_of(
        self, log_q: LogProbs, n_gram: LogProbs | None = None
    ) -> dict[str, Any]:
        """Returns perplexities by split, alone and mixed, and of the n-gram.

        Args:
            log_q: Of a model.
            n_gram: What it is mixed with; None: the judge's own.

        Raises:
            TrainingDivergedError: If one is no number.
        """
        log_p = self.n_gram_log_probs if n_gram is None else n_gram
        mu = evaluation.tune_interpolation(log_q["valid"], log_p["valid"])
        found: dict[str, Any] = {"mu": mu}
        for split in SPLITS:
            mixed = evaluation.interpolate(log_q[split], log_p[split], mu)
            found[split] = {
                "alone": perplexity_of(log_q[split]),
                "mixed": perplexity_of(mixed),
                "kneser_ney": perplexity_of(log_p[split]),
            }
        run_files.check_converged(scores=found)
        return found


def perplexity_of(log_probs: np.ndarray) -> float:
    """Returns the perplexity of tokens with these log-probabilities."""
    return float(np.exp(-np.mean(log_probs, dtype=np.float64)))

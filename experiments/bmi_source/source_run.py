"""A run of `experiments.bmi_source`: what it is of, and its texts."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from experiments.bmi_source.config import SourceConfig
from rlm_tf.data import TopicSource

# Of the texts that choose and judge, whatever the run's seed.
_VALID_SEED, _TEST_SEED = 1001, 1002


class SourceRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to.
        length: Words of a sentence.
        sentences: To train on.
        arm: Of `ARMS`.
        seed: Of text, weights, dropout and pairs.
    """

    config: SourceConfig
    length: int
    sentences: int
    arm: str
    seed: int

    @property
    def chosen(self) -> dict[str, Any]:
        """What the run has of settings that are lists."""
        return {
            "sentence_lengths": self.length,
            "sentences": self.sentences,
            "arms": self.arm,
        }

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run."""
        return {**dataclasses.asdict(self.config), **self.chosen, "seed": self.seed}

    @property
    def source(self) -> TopicSource:
        """Where texts come from."""
        config = self.config
        return TopicSource(
            config.num_topics,
            config.num_words,
            self.length,
            shown=config.shown,
            stay=config.stay,
        )

    @property
    def text(self) -> np.ndarray:
        """What is trained on."""
        return self.source.sample(self.sentences, self.seed)

    @property
    def valid(self) -> np.ndarray:
        """What chooses."""
        return self.source.sample(self.config.valid_sentences, _VALID_SEED)

    @property
    def test(self) -> np.ndarray:
        """What judges."""
        return self.source.sample(self.config.test_sentences, _TEST_SEED)

    def judge(self, found: np.ndarray) -> dict[str, float]:
        """Returns what log-probabilities of the test text are worth.

        Args:
            found: `[tokens]`, of some model.
        """
        source, test = self.source, self.test
        exact = source.log_probs(test)
        marked = (test >= 1) & (test <= source.num_topics)
        return {
            "test_nll": float(-np.mean(found)),
            "floor": float(-np.mean(exact)),
            "marker_ratio": float(np.exp(np.mean((exact - found)[marked]))),
            "elsewhere": float(np.mean((exact - found)[~marked])),
        }

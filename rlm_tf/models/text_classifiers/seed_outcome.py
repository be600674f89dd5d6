"""What comes of a procedure from seed words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlm_tf.models.text_classifiers.text_classifier import TextClassifier


class SeedOutcome(NamedTuple):
    """What came of a procedure, of N documents.

    Attributes:
        model: The classifier that was trained last.
        probs: float32 `[N, C]`, its probabilities.
        selected: bool `[N]`, documents whose labels were learnt from at first.
        confidence: float64 `[N]`, of labelled documents what they were selected by,
            higher is surer; nan of others, and where all were taken.
        rounds: int32 `[R, N]`, predictions after the first training on them, and after
            each iteration of self-training.
        probe_losses: float64 `[E, N]`, -ln P(label | document) after each epoch of the
            probe, nan of documents without a label: exp(-loss) is the confidence that
            stopping there would have given. None: there was no probe.
    """

    model: TextClassifier
    probs: np.ndarray
    selected: np.ndarray
    confidence: np.ndarray
    rounds: np.ndarray
    probe_losses: np.ndarray | None = None

"""How good labels and predictions are, without true labels and with some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rlm_tf.evaluation import expected_calibration_error, fit_temperature
from rlm_tf.labelling import (
    Matches,
    SeedRule,
    accuracy_from_labels,
    choose_to_label,
    confident_joint,
    seed_agreement,
)
from rlm_tf.labelling.accuracy import confidence_strata

# Labels that probabilities are set right by, at least.
_LEAST = 20


def without_labels(
    rule: SeedRule,
    matches: Matches,
    judged: dict[str, np.ndarray],
) -> dict[str, Any]:
    """Returns estimates of how many of the rule's labels are right.

    Args:
        rule: The rule.
        matches: What it says.
        judged: By name, float `[N, C]`, what probes say of documents that they have
            not learnt from; nan where they have not seen the class either.

    Returns:
        By name a share, None where there is no estimate; `by_class` of the last of
        `judged`; and of seeds that meet how many documents there are.
    """
    found: dict[str, Any] = {}
    for name, probs in judged.items():
        known = (matches.labels >= 0) & np.isfinite(probs).all(axis=1)
        if not known.any():
            continue
        joint = confident_joint(matches.labels[known], probs[known].astype(np.float64))
        found[name] = 1 - joint.noise_rate
        rows = joint.calibrated.sum(axis=1)
        found["by_class"] = [
            float(joint.calibrated[c, c] / rows[c]) if rows[c] else None
            for c in range(len(rows))
        ]
    agreement = seed_agreement(rule, matches)
    is_known = agreement.documents > 0
    found["seeds_that_meet"] = agreement.accuracy if is_known else None
    found["documents_where_seeds_meet"] = agreement.documents
    return found


class Sample(NamedTuple):
    """What a person is asked to label, and whom it stands for.

    Attributes:
        rows: int `[M]`, documents of `to_label.csv`, in an order that is drawn.
        strata: int `[N]`, of every document that has a prediction; -1: it has none.
    """

    rows: np.ndarray
    strata: np.ndarray


def sample_of(probs: np.ndarray, labels: np.ndarray, count: int, seed: int) -> Sample:
    """Returns what is asked, of documents that have a prediction.

    Args:
        probs: float `[N, C]`.
        labels: int `[N]`, predictions, -1: none.
        count: How many.
        seed: Of the draw.
    """
    predicted = np.flatnonzero(labels >= 0)
    confidence = probs[predicted].max(axis=1)
    chosen = choose_to_label(confidence, count, seed=seed)
    strata = np.full(len(labels), -1)
    strata[predicted] = confidence_strata(confidence, count)
    # Whoever labels the first ones only has some of all strata.
    order = np.random.default_rng(seed).permutation(len(chosen.indices))
    return Sample(predicted[chosen.indices[order]], strata)


def accuracy(
    labels: np.ndarray, truth: np.ndarray, samples: Sequence[Sample]
) -> dict[str, float] | None:
    """Returns the estimate of the accuracy from what a person has labelled.

    Labels of documents of a sample and others are pooled by stratum; a stratum without
    any is put to the next one. Without any of the samples they are a simple sample.
    None where nothing can be judged.

    Args:
        labels: int `[N]`, predictions, -1: none, of which nothing is asked.
        truth: int `[N]`, -1 of documents without a true label.
        samples: What may have been asked, the likeliest first.
    """
    found = _strata(labels, truth, samples)
    if found is None:
        return None
    rows, strata, sizes = found
    right = labels[rows] == truth[rows]
    return {
        "labels": len(rows),
        **accuracy_from_labels(right, strata, sizes)._asdict(),
    }


def _strata(
    labels: np.ndarray, truth: np.ndarray, samples: Sequence[Sample]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Returns documents that can be judged, of which stratum each is, and their sizes.

    Arguments as those of `accuracy`. None where there is no such document.
    """
    rows = np.flatnonzero((truth >= 0) & (labels >= 0))
    if not len(rows):
        return None
    asked = [own for own in samples if np.isin(rows, own.rows).any()]
    whole = [own for own in asked if set(own.strata[rows]) >= set(own.strata) - {-1}]
    if asked:
        strata = (whole or asked)[0].strata
        sizes = np.bincount(strata[strata >= 0])
        group = _joined(np.bincount(strata[rows], minlength=len(sizes)))
        sizes = np.bincount(group, sizes).astype(int)
        return rows, group[strata[rows]], sizes
    number = int((labels >= 0).sum())
    return rows, np.zeros(len(rows), int), np.array([number])


def _joined(drawn: np.ndarray) -> np.ndarray:
    """Returns groups of neighbouring strata that have a label each, int `[S]`.

    Args:
        drawn: Labels of each stratum, int `[S]`, in order of confidence.
    """
    # A group ends with a stratum that has labels.
    ends = np.cumsum(drawn > 0)
    return np.minimum(ends - (drawn > 0), ends[-1] - 1)


def calibration(
    probs: np.ndarray,
    labels: np.ndarray,
    truth: np.ndarray,
    samples: Sequence[Sample],
) -> dict[str, float] | None:
    """Returns how right probabilities are; None of too few labels.

    A label counts as the documents of its stratum that it stands for.

    Args:
        probs: float `[N, C]`.
        labels: See `accuracy`, as the others.
        truth: int `[N]`.
        samples: What may have been asked.
    """
    found = _strata(labels, truth, samples)
    if found is None or len(found[0]) < _LEAST:
        return None
    rows, strata, sizes = found
    weights = (sizes / np.maximum(np.bincount(strata, minlength=len(sizes)), 1))[strata]
    own = probs[rows].astype(np.float64)
    logits = np.log(np.maximum(own, 1e-30))
    fitted = fit_temperature(logits, truth[rows], weights=weights)
    return {
        "ece": expected_calibration_error(
            own, truth[rows], bins=5, equal="mass", weights=weights
        ),
        "temperature": fitted.temperature,
        "nll_before": fitted.nll_before,
        "nll_after": fitted.nll_after,
    }

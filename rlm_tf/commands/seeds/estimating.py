"""How good labels and predictions are, without true labels and with some."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlm_tf.evaluation import expected_calibration_error, fit_temperature
from rlm_tf.labelling import (
    Matches,
    SeedRule,
    ToLabel,
    accuracy_from_labels,
    confident_joint,
    seed_agreement,
)

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
            not learnt from.

    Returns:
        By name a share, None where there is no estimate; `by_class` of the last of
        `judged`; and of seeds that meet how many documents there are.
    """
    known = matches.labels >= 0
    found: dict[str, Any] = {}
    for name, probs in judged.items():
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


def accuracy(
    labels: np.ndarray, truth: np.ndarray, chosen: ToLabel, number: int
) -> dict[str, float]:
    """Returns the estimate of the accuracy from what a person has labelled.

    Args:
        labels: int `[N]`, predictions.
        truth: int `[N]`, -1 of documents without a true label.
        chosen: What `to_label.csv` has.
        number: N.
    """
    rows = np.flatnonzero(truth >= 0)
    right = labels[rows] == truth[rows]
    strata = dict(zip(chosen.indices.tolist(), chosen.strata.tolist(), strict=True))
    of = np.array([strata.get(row, -1) for row in rows.tolist()])
    drawn = np.bincount(of[of >= 0], minlength=len(chosen.stratum_sizes))
    if len(rows) and (of >= 0).all() and (drawn > 0).all():
        found = accuracy_from_labels(right, of, chosen.stratum_sizes)
    else:
        # Others than those of to_label.csv, or not all of its strata: a simple sample.
        found = accuracy_from_labels(right, np.zeros(len(rows), int), [number])
    return {"labels": len(rows), **found._asdict()}


def calibration(probs: np.ndarray, truth: np.ndarray) -> dict[str, float] | None:
    """Returns how right probabilities are; None of too few labels."""
    rows = np.flatnonzero(truth >= 0)
    if len(rows) < _LEAST:
        return None
    own = probs[rows].astype(np.float64)
    logits = np.log(np.maximum(own, 1e-30))
    fitted = fit_temperature(logits, truth[rows])
    return {
        "ece": expected_calibration_error(own, truth[rows], bins=5, equal="mass"),
        "temperature": fitted.temperature,
        "nll_before": fitted.nll_before,
        "nll_after": fitted.nll_after,
    }

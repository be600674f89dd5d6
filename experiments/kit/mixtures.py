"""Interpolation of logistic regressions with their restricted model."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlm_tf.evaluation import interpolate, tune_interpolation


def mixed_accuracies(
    held_out_log_probs: np.ndarray,
    targets: np.ndarray,
    labels: np.ndarray,
    test_logits: Any,
    test_targets: np.ndarray,
    test_labels: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Measures (1 - mu) Q + mu P_hat; mu is chosen on each run's held-out predictions.

    Args:
        held_out_log_probs: `[R, n, 2]`, log Q of a run's examples when they are held
            out, in nats.
        targets: `[R, n]`, P_hat(y = 1) at these.
        labels: int `[R, n]`.
        test_logits: `[R, N]`, of Q on the test points.
        test_targets: `[N]` or `[R, N]`, P_hat(y = 1) there.
        test_labels: int `[N]`.

    Returns:
        Each run's test accuracy and mu, `[R]` each.
    """
    logits = np.asarray(test_logits, np.float64)
    with np.errstate(divide="ignore"):
        log_targets = np.log(np.stack([1 - targets, targets], axis=-1))
        log_test = np.log(np.broadcast_to(test_targets, logits.shape))
    accuracies, mus = np.empty(len(logits)), np.empty(len(logits))
    rows = np.arange(labels.shape[1])
    for run, own in enumerate(labels):
        mus[run] = tune_interpolation(
            held_out_log_probs[run, rows, own], log_targets[run, rows, own]
        )
        mixed = interpolate(-np.logaddexp(0, -logits[run]), log_test[run], mus[run])
        accuracies[run] = ((mixed > np.log(0.5)) == test_labels).mean()
    return accuracies, mus

"""How many predictions of a batch stand behind its induced models."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlm_tf.data import ContiguousBatches


def effective_counts(batches: ContiguousBatches, context_length: int) -> dict[str, Any]:
    """Returns the distribution of in-batch counts over the positions of an epoch.

    Without a bank: the number of positions of the same batch that share the position's
    short context, itself included.

    Args:
        batches: The training batches.
        context_length: Words of a short context.

    Returns:
        `mean`, `share_alone` (count 1), `share_below_5`, and `quantiles` (10, 25, 50,
        75, 90 %).
    """
    counts = []
    for step in range(batches.steps):
        element = batches.element(step)
        tokens, weights = element.inputs[0], element.weights
        windows = np.lib.stride_tricks.sliding_window_view(
            tokens, context_length, axis=1
        )
        used = windows[weights[:, context_length - 1 :] > 0]
        _, numbers, number = np.unique(
            used, axis=0, return_inverse=True, return_counts=True
        )
        counts.append(number[numbers.ravel()])
    all_counts = np.concatenate(counts)
    levels = (10, 25, 50, 75, 90)
    return {
        "mean": float(all_counts.mean()),
        "share_alone": float((all_counts == 1).mean()),
        "share_below_5": float((all_counts < 5).mean()),
        "quantiles": {
            str(level): float(np.percentile(all_counts, level)) for level in levels
        },
    }

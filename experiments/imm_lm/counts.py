"""How many predictions stand behind the in-batch induced models of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlm_tf.data import ContiguousBatches


def effective_counts(
    batches: ContiguousBatches,
    context_length: int,
    vocabulary_size: int,
    bank_size: int = 0,
    bank_target: int = 0,
) -> dict[str, Any]:
    """Returns the distribution of predictions a position over an epoch.

    The count of a position is the number of positions of its batch that share its short
    context, itself included, and what the bank of the latest positions adds up to
    `bank_target`. The bank starts empty, as in the first epoch.

    Args:
        batches: The training batches.
        context_length: Words of a short context.
        vocabulary_size: Number of words.
        bank_size: Positions in the bank; 0: no bank.
        bank_target: The bank fills counts up to this number.

    Returns:
        `mean`, `share_alone` (count 1), `share_below_5`, and `quantiles` (10, 25, 50,
        75, 90 %).
    """
    counts = []
    bank = np.zeros(0, np.int64)
    digits = vocabulary_size ** np.arange(context_length, dtype=np.int64)
    for step in range(batches.steps):
        element = batches.element(step)
        tokens, weights = element.inputs[0].astype(np.int64), element.weights
        windows = np.lib.stride_tricks.sliding_window_view(
            tokens, context_length, axis=1
        )
        keys_of_steps = windows @ digits
        counts_at = weights[:, context_length - 1 :] > 0
        keys = keys_of_steps[counts_at]
        groups, numbers, number = np.unique(
            keys, return_inverse=True, return_counts=True
        )
        sorted_bank = np.sort(bank)
        in_bank = np.searchsorted(sorted_bank, groups, "right") - np.searchsorted(
            sorted_bank, groups, "left"
        )
        number = number + np.minimum(in_bank, np.maximum(bank_target - number, 0))
        counts.append(number[numbers])
        # The last step of the window is the newest, in every row.
        newest_first = keys_of_steps.T[::-1][counts_at.T[::-1]]
        bank = np.concatenate([newest_first, bank])[:bank_size]
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

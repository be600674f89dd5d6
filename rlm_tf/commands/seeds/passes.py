"""How often `rlm_tf seed_classify` reads documents, and whether that went well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Passes, and steps of the labelled documents, at least; passes at most.
_EPOCHS, _STEPS, _MOST_EPOCHS = 8, 400, 100
# Of many documents there are fewer passes: steps of the first training, and of each on
# all documents.
_MOST_STEPS, _MOST_OWN_STEPS = 10_000, 2000
# Of encoders that were trained before.
_ENCODER_EPOCHS, _ENCODER_STEPS = 3, 300
# What self-training must keep: this share of the predictions of a class, and of
# labelled documents that are predicted as labelled all but this share.
_LEAST_KEPT, _MOST_LOST = 0.2, 0.15


def passes_over(
    labelled: int, documents: int, batch_size: int, is_of_words: bool
) -> tuple[int, int]:
    """Returns epochs of labelled documents, and of each training on all of them.

    Args:
        labelled: How many have a label.
        documents: How many there are.
        batch_size: Of them.
        is_of_words: Whether nothing was trained before.
    """
    least, wanted = (
        (_EPOCHS, _STEPS) if is_of_words else (_ENCODER_EPOCHS, _ENCODER_STEPS)
    )
    steps = -(-labelled // batch_size)
    epochs = min(max(least, -(-wanted // steps)), _MOST_EPOCHS)
    # However few have labels, all documents may be many; or few: as many steps then.
    all_steps = -(-documents // batch_size)
    own = min(max(least, -(-wanted // all_steps)), _MOST_EPOCHS)
    return (
        min(epochs, -(-_MOST_STEPS // steps)),
        min(own, -(-_MOST_OWN_STEPS // all_steps)),
    )


def drifted(
    rounds: np.ndarray, labels: np.ndarray, class_names: Sequence[str]
) -> str | None:
    """Returns how self-training has left what the seeds say, or None if it has not.

    True labels are not needed to see it: a class that was predicted is not any more, or
    predictions of labelled documents are the seeds' far more seldom than at first.

    Args:
        rounds: int `[R, N]`, predictions after each training.
        labels: int `[N]`, of the seeds; -1: none.
        class_names: Names of classes.
    """
    first, last = rounds[0], rounds[-1]
    known = labels >= 0
    for label in np.unique(labels[known]):
        before, after = (int(np.sum(each == label)) for each in (first, last))
        if after < _LEAST_KEPT * before:
            name = class_names[label]
            return f"{name} was predicted {before:,} times, then {after:,}"
    follows = [float(np.mean(each[known] == labels[known])) for each in (first, last)]
    if follows[1] < follows[0] - _MOST_LOST:
        return (
            f"{100 * follows[0]:.0f} % of the labelled documents were predicted as "
            f"labelled, then {100 * follows[1]:.0f} %"
        )
    return None

"""In-batch induced models with a bank, position by position, in float64."""

from __future__ import annotations

import numpy as np

from tests.references import imm_reference


class NaiveInBatch:
    """What a step with `InBatchContexts` computes, and the bank that it leaves.

    The weights of the language model must not change between steps: the bank holds
    predictions.
    """

    def __init__(self, restricted, min_count, bank_size, bank_target=None):
        self.restricted = restricted
        self.min_count = min_count
        self.bank_size = bank_size
        self.target = bank_target or min_count
        self.bank = []  # (short context, prediction), newest first

    def step(self, tokens, weights, predictions):
        """Takes one batch.

        Args:
            tokens: `[B, T]`.
            weights: `[B, T]`.
            predictions: `[B, T, V]`, probabilities.

        Returns:
            The weighted loss and the weight of every position with a whole short
            context, and the number of predictions behind its induced model.
        """
        length = self.restricted.context_length
        rows, steps = tokens.shape
        places = [
            (row, step)
            for row in range(rows)
            for step in range(length - 1, steps)
            if weights[row, step] > 0
        ]

        def context(row, step):
            return tuple(int(w) for w in tokens[row, step - length + 1 : step + 1])

        losses, counted, counts = [], [], []
        for row, step in places:
            mine = context(row, step)
            members = [predictions[p] for p in places if context(*p) == mine]
            older = [probs for key, probs in self.bank if key == mine]
            members += older[: max(self.target - len(members), 0)]
            counts.append(len(members))
            if len(members) < self.min_count:
                losses.append(0.0)
                counted.append(0.0)
                continue
            target = self.restricted.probs_numpy(np.array([mine]))[0]
            loss = imm_reference.imm_loss(target, np.mean(members, axis=0))
            losses.append(weights[row, step] * loss)
            counted.append(weights[row, step])
        newest = sorted(places, key=lambda place: -place[1])
        entries = [(context(*place), predictions[place]) for place in newest]
        self.bank = (entries + self.bank)[: self.bank_size]
        return losses, counted, counts

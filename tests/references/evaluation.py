"""Evaluation by brute force: every prefix from scratch, plain dictionaries, float64."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Sequence

import numpy as np

# Maps a prefix of token ids to the probabilities of the next token.
Predict = Callable[[list[int]], np.ndarray]


def log_likelihoods(
    predict: Predict, tokens: Sequence[int], prefix: int
) -> list[float]:
    """The log-probability of every token given `prefix` and all tokens before it."""
    text = [prefix, *tokens]
    return [math.log(predict(text[:i])[text[i]]) for i in range(1, len(text))]


def induced_nats(
    predict: Predict,
    train: Sequence[int],
    text: Sequence[int],
    prefix: int,
    context_length: int,
) -> tuple[float, int, int]:
    """Returns (mean negative log-likelihood, tokens scored, tokens left out).

    Enumerates all extended contexts: Q is averaged over every prefix of the training
    text that ends in the short context.
    """
    read = [prefix, *train[:-1]]
    predictions = collections.defaultdict(list)
    for end in range(context_length, len(read) + 1):
        short = tuple(read[end - context_length : end])
        predictions[short].append(predict(read[:end]))
    nats, left_out = [], 0
    for end in range(context_length, len(text)):
        short = tuple(text[end - context_length : end])
        if short in predictions:
            induced = np.mean(predictions[short], axis=0)
            nats.append(-math.log(induced[text[end]]))
        else:
            left_out += 1
    return math.fsum(nats) / len(nats), len(nats), left_out

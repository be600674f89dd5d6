"""Where a model gains: by the frequency of words, and by contexts that were seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.kit.mixture_judge import LogProbs, MixtureJudge
from rlm_tf import evaluation
from rlm_tf.restricted.restricted_model import contexts_of

# Edges of how often a word is in the training text.
_EDGES = (1, 10, 100, 1000)


def by_kind_of_token(
    judge: MixtureJudge, text: np.ndarray, log_q: LogProbs, mu: float
) -> dict[str, list[dict[str, Any]]]:
    """Returns the nats of kinds of tokens of the test text.

    Args:
        judge: Of the corpus, with an n-gram of the training text.
        text: What is trained on, int `[N]`.
        log_q: Of a model.
        mu: Weight of the n-gram in the mixture.

    Returns:
        By `frequency` (how often the word is in the text: never, below 10, 100, 1,000,
        or more) and by `context` (how many of the words before it the n-gram has seen
        together): for each kind the number of tokens, and the mean nats of the model
        alone, of the mixture, and of the n-gram.
    """
    test = judge.corpus.test
    counts = np.bincount(text, minlength=len(judge.corpus.vocabulary))
    columns = {
        "alone": -log_q["test"],
        "mixed": -evaluation.interpolate(
            log_q["test"], judge.n_gram_log_probs["test"], mu
        ),
        "n_gram": -judge.n_gram_log_probs["test"],
    }
    kinds = {
        "frequency": np.searchsorted(_EDGES, counts[test], side="right"),
        "context": _seen(judge),
    }
    most = {"frequency": len(_EDGES), "context": judge.n_gram.context_length}
    return {
        name: [
            {
                "tokens": int(np.sum(kind == number)),
                **{
                    column: float(np.mean(values[kind == number]))
                    if np.any(kind == number)
                    else None
                    for column, values in columns.items()
                },
            }
            for number in range(most[name] + 1)
        ]
        for name, kind in kinds.items()
    }


def _seen(judge: MixtureJudge) -> np.ndarray:
    """Returns how many words before each test token are a context of the n-gram."""
    length = judge.n_gram.context_length
    before = np.full(length, judge.corpus.vocabulary.eos_id)
    stream = np.concatenate([before, judge.corpus.test]).astype(np.int64)
    tables = judge.n_gram.tables()
    numbers = tables.context_numbers(contexts_of(stream, length))
    known = [
        number < len(level.keys) - 1
        for number, level in zip(numbers, tables.levels, strict=True)
    ]
    return np.sum(known, axis=0)

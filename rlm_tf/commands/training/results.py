"""What is said of a trained model: its scores, and whether it is worth having."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlm_tf.commands.training import measuring
from rlm_tf.data import Corpus
from rlm_tf.evaluation import CorpusPerplexity

_MUCH = 0.9
# Rows of the scores, in sentences.
PROSE = {
    "mixture": "mixture",
    "model": "model",
    "model, temperature": "model at its best temperature",
}


def held_out(corpus: Corpus) -> dict[str, measuring.Text]:
    """Returns the validation and the test text of a corpus."""
    return {
        split: measuring.Text(
            getattr(corpus, split),
            getattr(corpus.num_bytes, split),
            getattr(corpus.num_words, split),
        )
        for split in ("valid", "test")
    }


def scores_of(
    log_probs: dict[str, dict[str, np.ndarray]], held: dict[str, measuring.Text]
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Returns perplexities and bits per byte by model and split.

    Where scripts without blanks make words of whole lines, a word's perplexity may be
    beyond all floats; it is None then.
    """

    def row(found: CorpusPerplexity) -> dict[str, float | None]:
        numbers = found._asdict()
        if not math.isfinite(found.perplexity_per_word or 0.0):
            numbers["perplexity_per_word"] = None
        return numbers

    return {
        name: {
            split: row(held[split].perplexity(found)) for split, found in splits.items()
        }
        for name, splits in log_probs.items()
    }


def served_of(results: dict[str, Any]) -> str:
    """Returns the row of what is served, in the scores of `results`."""
    if results["mixture"]["mu"] is not None:
        return "mixture"
    # Where another temperature than 1 is no better, there is no row of it.
    alone = "model, temperature"
    return alone if alone in results["scores"] else "model"


def verdict(results: dict[str, Any]) -> list[str]:
    """Returns what a person should know of a model that is worse than it seems."""
    found = []
    served = PROSE[served_of(results)]
    behind = _behind(results["scores"], served_of(results))
    alone = _behind(results["scores"], "model")
    if behind:
        found.append(
            f"the {served}, which is served, is not better than its n-gram on the "
            f"{behind} text: give it more --minutes, or serve the n-gram (`rlm_tf "
            "export --n_gram`)"
        )
    elif alone:
        found.append(
            f"the model alone is not better than its n-gram on the {alone} text; the "
            f"{served}, which is served, is"
        )
    if results["mixture"]["best_mu"] > _MUCH:
        found.append(
            f"the best mixture is {100 * results['mixture']['best_mu']:.0f} % n-gram: "
            "the model adds little"
        )
    return found


def _behind(scores: dict[str, Any], name: str) -> str:
    """Returns on which of the held-out texts a row is not ahead of the n-gram."""
    nats = "nats_per_token"
    return " and the ".join(
        {"valid": "validation", "test": "test"}[split]
        for split in ("valid", "test")
        if scores[name][split][nats] >= scores["n-gram"][split][nats]
    )

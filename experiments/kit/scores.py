"""Numbers of language models that compare vocabularies."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rlm_tf.data import Corpus

Scores = dict[str, dict[str, float | None]]


def comparable(corpus: Corpus, perplexity: Mapping[str, float | None]) -> Scores:
    """Returns bits per byte and perplexity per word of each split, for a row.

    Args:
        corpus: Whose splits were evaluated, all their tokens.
        perplexity: By split; None where there is none.

    Returns:
        By name and split; None where there is no perplexity, nothing where the sizes
        of the texts are not known.
    """
    if corpus.num_bytes is None or corpus.num_words is None:
        return {}
    found: Scores = {"bits_per_byte": {}, "perplexity_per_word": {}}
    for split, value in perplexity.items():
        bits = words = None
        if value is not None:
            nats = math.log(value) * len(getattr(corpus, split))
            bits = nats / math.log(2) / getattr(corpus.num_bytes, split)
            words = _exponential(nats / getattr(corpus.num_words, split))
        found["bits_per_byte"][split] = bits
        found["perplexity_per_word"][split] = words
    return found


def line_of(name: str, perplexity: Mapping[str, float | None], scores: Scores) -> str:
    """Returns a line for people: what a model reaches on each split."""
    parts = []
    for split, value in perplexity.items():
        shown = "diverged" if value is None else f"{value:.2f}"
        bits = scores.get("bits_per_byte", {}).get(split)
        if bits is not None:
            shown += f" ({bits:.3f} bits per byte)"
        parts.append(f"{split} {shown}")
    return f"{name}: perplexity {', '.join(parts)}"


def _exponential(nats: float) -> float | None:
    # JSON has no infinity; a text without blanks has few words.
    return math.exp(nats) if nats < math.log(1e300) else None

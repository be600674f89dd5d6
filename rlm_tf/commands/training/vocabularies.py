"""The vocabulary of a text: which rule, how large, and why."""

from __future__ import annotations

from typing import Any

from rlm_tf.commands.settings import TrainSettings
from rlm_tf.data import Vocabulary
from rlm_tf.data.text.tokenisation import SUBWORD_RULES, UNK

# Of tables.
NORMALISED = "bytes, and bits per byte, are those of the text after NFKC"
# A text with more of them was prepared by somebody for whole words.
_MOST_MARKS = 1e-3
# Bytes of which pieces are learnt: every so many lines of a larger text.
_MOST_PIECES_FROM = 20_000_000


def choose_rule(text: bytes, settings: TrainSettings) -> tuple[str, str]:
    """Returns the rule and the reason for it."""
    if settings.rule is not None:
        return settings.rule, "--rule"
    marks = text.count(b" " + UNK.encode() + b" ")
    if marks > _MOST_MARKS * max(text.count(b" "), 1):
        return "whitespace", f"the text has {marks:,} {UNK}, so it was cut into words"
    return "sentencepiece-unigram", "nothing is unknown, all text comes back as it was"


def size_reason(rule: str, settings: TrainSettings) -> str:
    """Returns why the vocabulary is as large as it is."""
    if settings.max_size is not None:
        return f"--max_size={settings.max_size:,}"
    if rule in SUBWORD_RULES:
        return "a piece for each 120 bytes, 500 to 16,000 (--max_size)"
    if rule == "words":
        return "words that occur twice (--max_size)"
    return "all tokens of the training text (--max_size)"


def make_vocabulary(text: bytes, rule: str, settings: TrainSettings) -> Vocabulary:
    """Returns the vocabulary of a training text.

    Raises:
        ValueError: If nothing can be learnt from it.
    """
    options: dict[str, Any] = {}
    if settings.max_size is not None:
        options["max_size"] = settings.max_size
    if rule in SUBWORD_RULES:
        options["normalisation"] = "nfkc" if settings.nfkc else "identity"
        if len(text) > _MOST_PIECES_FROM:
            lines = text.split(b"\n")
            step = -(-len(text) // _MOST_PIECES_FROM)
            options.setdefault("max_size", 16_000)
            text = b"\n".join(lines[::step])
    elif settings.nfkc:
        raise ValueError(f"--nfkc is for subwords; found --rule={rule}.")
    elif rule in ("words", "characters"):
        options |= {"min_count": 2 if rule == "words" else 1, "unknown": True}
    elif rule == "whitespace":
        options["unknown"] = True
    elif "max_size" in options:
        raise ValueError("--max_size: there are always 256 bytes and <eos>.")
    return Vocabulary.build(text, rule, **options)

"""What the report tells besides scores: costly tokens, forecast, calibration."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf import evaluation
from rlm_tf.data import Corpus, Vocabulary
from rlm_tf.data.text.corpus_summary import UNSPACED
from rlm_tf.data.text.tokenisation import EOS, SUBWORD_RULES
from rlm_tf.evaluation.reliability import Reliability, reliability
from rlm_tf.generation.stepwise import StepwiseModel
from rlm_tf.numerics import at_least_single
from rlm_tf.restricted import KneserNey

_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
_TIMES = (2, 4, 10)
_WINDOW = 256
_BLANK = "\u2581"
_BYTE = re.compile("<0x([0-9A-F]{2})>")


class Costly(NamedTuple):
    """A word and what it costs.

    Attributes:
        word: The word; of characters and bytes, a token.
        times: How often it comes.
        nats: What each costs on average.
        share: Share of the cost of the whole text.
    """

    word: str
    times: int
    nats: float
    share: float


def costly_words(
    vocabulary: Vocabulary, tokens: np.ndarray, log_probs: np.ndarray, most: int = 15
) -> list[Costly]:
    """Returns the words that cost most in all; pieces are put together."""
    nats = -np.asarray(log_probs, np.float64)
    starts = np.arange(len(tokens))
    if vocabulary.rule in SUBWORD_RULES:
        begins = np.array([_begins_word(name) for name in vocabulary.tokens])
        # Behind the end of a line something new begins.
        after = np.concatenate([[True], tokens[:-1] == vocabulary.eos_id])
        starts = np.flatnonzero(begins[tokens] | after)
    costs = np.add.reduceat(nats, starts)
    ends = np.append(starts[1:], len(tokens))
    found: dict[str, tuple[int, float]] = {}
    for start, end, cost in zip(starts, ends, costs, strict=True):
        names = (vocabulary.tokens[i] for i in tokens[start:end])
        word = _written(names).replace(_BLANK, " ").strip() or "(blank)"
        times, total = found.get(word, (0, 0.0))
        found[word] = (times + 1, total + cost)
    first = sorted(found.items(), key=lambda item: (-item[1][1], item[0]))[:most]
    whole = nats.sum()
    return [
        Costly(word, times, total / times, float(total / whole))
        for word, (times, total) in first
    ]


def _begins_word(piece: str) -> bool:
    """Whether a word begins with a piece: a blank, the end of a line, a sign.

    Pieces of scripts without blanks are words, and what is written in bytes begins with
    the first of a character.
    """
    byte = _BYTE.fullmatch(piece)
    if byte is not None:
        return int(byte[1], 16) & 0xC0 != 0x80
    if piece == EOS or piece.startswith(_BLANK) or UNSPACED.match(piece):
        return True
    return not piece[0].isalnum()


def _written(pieces: Iterable[str]) -> str:
    """Returns what is written in pieces, some of which may be bytes."""
    parts = []
    for piece in pieces:
        byte = _BYTE.fullmatch(piece)
        parts.append(piece.encode() if byte is None else bytes([int(byte[1], 16)]))
    return b"".join(parts).decode("utf-8", "replace")


class Forecast(NamedTuple):
    """How the n-gram model gets better with text.

    Attributes:
        tokens: Amounts of text.
        bits_per_byte: Of the test text, measured for the first four amounts, then as
            the fitted law has it.
        measured: Which are measured.
    """

    tokens: list[int]
    bits_per_byte: list[float]
    measured: list[bool]


def forecast(
    corpus: Corpus, text: np.ndarray, order: int, whole: np.ndarray | None = None
) -> Forecast | None:
    """Fits the scaling law to n-gram models of parts of a text.

    Args:
        corpus: Its validation text tunes floors, its test text is scored.
        text: The tokens that are counted.
        order: Of the n-gram models.
        whole: Log-probabilities of the test text under the model of all of `text`;
            None: they are computed.

    Returns:
        None if the loss does not fall with the amount, or there is too little text.
    """
    if int(_SHARES[0] * len(text)) < order:
        return None
    eos, amounts, nats = corpus.vocabulary.eos_id, [], []
    for share in _SHARES:
        amount = int(share * len(text))
        found = whole if share == 1.0 else None
        if found is None:
            model = KneserNey(order).fit(text[:amount], len(corpus.vocabulary))
            floor = evaluation.tune_floor(model, corpus.valid, prefix=eos)
            found = evaluation.restricted_target_log_probs(
                model.with_floor(floor), corpus.test, prefix=eos
            )
        amounts.append(amount)
        nats.append(-float(found.mean()))
    try:
        law = evaluation.fit_scaling_law(np.array(amounts), np.array(nats))
    except ValueError:
        return None
    assert corpus.num_bytes is not None
    unit = len(corpus.test) / np.log(2) / corpus.num_bytes.test
    more = [times * len(text) for times in _TIMES]
    values = [*nats, *(float(law.loss(amount)) for amount in more)]
    return Forecast(
        [*amounts, *more],
        [float(value * unit) for value in values],
        [True] * len(amounts) + [False] * len(more),
    )


def calibration(model: StepwiseModel, tokens: np.ndarray, prefix: int) -> Reliability:
    """Returns how often the most probable token comes, by its probability.

    Args:
        model: The model.
        tokens: The text.
        prefix: The token before it.
    """
    states = model.zero_states(1)

    @tf.function(autograph=False, reduce_retracing=True)
    def window(read: tf.Tensor, states: object) -> tuple[tf.Tensor, tf.Tensor, object]:
        features, states = model.forward(read, states)
        logits = at_least_single(model.output_logits(features)[0])
        best = tf.argmax(logits, axis=-1)
        top = tf.reduce_max(tf.nn.softmax(logits), axis=-1)
        return best, top, states

    read = np.concatenate([[prefix], tokens[:-1]]).astype(np.int32)
    guesses, sure = [], []
    for first in range(0, len(read), _WINDOW):
        part = tf.constant(read[np.newaxis, first : first + _WINDOW])
        best, top, states = window(part, states)
        guesses.append(best.numpy())
        sure.append(top.numpy())
    confidences = np.minimum(np.concatenate(sure), 1.0)
    return reliability(confidences, np.concatenate(guesses) == tokens)

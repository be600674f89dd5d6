"""Kneser-Ney models: fitting and distributions, ours and NLTK's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.benchmark.preset import Preset
from experiments.benchmark.stream import Stream
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import elapsed
from rlm_tf.restricted import KneserNey

_OUR_REPETITIONS = 11


def measure(
    preset: Preset,
    load: Callable[[], Stream],
    seeds: tuple[int, ...],
    orders: tuple[int, ...],
) -> Row:
    """Times fits and the distributions after distinct short contexts.

    Ours computes all distributions in one graph call. NLTK scores one word after one
    context a call, and reads the counts of all contexts for each: some random pairs of
    those contexts and words are scored, and their mean time is multiplied by the number
    of pairs (contexts times vocabulary).
    """
    timings, stream = Timings(), load()
    tokens = stream.tokens[: preset.fit_tokens]
    lines: list[Line] = []
    numbers: dict[str, Any] = {"corpus": stream.name, "fit_tokens": len(tokens)}
    for order in orders:
        lines += _fit_and_rows(preset, stream, tokens, order, seeds, timings)
    return Row(lines, {**numbers, "times": timings.numbers()})


def _fit_and_rows(
    preset: Preset,
    stream: Stream,
    tokens: np.ndarray,
    order: int,
    seeds: tuple[int, ...],
    timings: Timings,
) -> list[Line]:
    size = stream.vocabulary_size
    fit, rows = f"fit, order {order}", f"rows, order {order}"
    model = KneserNey(order).fit(tokens, size)
    for _ in range(5):
        timings.add(fit, elapsed(lambda: KneserNey(order).fit(tokens, size)))
    log_probs = tf.function(model.log_probs)
    peer = None
    for seed in seeds:
        contexts = distinct_contexts(tokens, order - 1, preset.contexts, seed)
        ids = tf.constant(contexts[:, 0] if order == 2 else contexts)
        log_probs(ids)
        for _ in range(_OUR_REPETITIONS):
            timings.add(rows, elapsed(partial(log_probs, ids)))
        if peer is None:
            peer = _nltk_model(tokens, order, timings)
        if peer is not None:
            words = np.random.default_rng(seed).integers(size, size=preset.scored_pairs)
            _time_nltk_pairs(peer, contexts, words, order, timings)
    what = f"Kneser-Ney fit, order {order}, {len(tokens):,} tokens"
    count = len(contexts)
    what_rows = (
        f"Kneser-Ney distributions, order {order}, {count} contexts x {size:,} words"
    )
    if peer is None:
        return [
            Line(what, timings.text(fit), "NLTK: not installed"),
            Line(what_rows, timings.text(rows), "NLTK: not installed"),
        ]
    nltk_fit, pair = f"NLTK {fit}", f"NLTK pair, order {order}"
    all_pairs = np.mean(timings.seconds[pair]) * count * size
    our_rate = count / timings.median(rows)
    nltk_rate = count / all_pairs
    return [
        Line(
            what,
            timings.text(fit),
            f"NLTK: {timings.text(nltk_fit)}",
            f"{timings.median(fit) / timings.median(nltk_fit):.2g}",
            "at most 1 s" if order == 2 else "",
        ),
        Line(
            what_rows,
            f"{timings.text(rows)} ({our_rate:,.0f} rows/s)",
            f"NLTK: {nltk_rate:.2g} rows/s (extrapolated from "
            f"{len(timings.seconds[pair])} pairs)",
            f"{timings.median(rows) / all_pairs:.1g}",
        ),
    ]


def distinct_contexts(
    tokens: np.ndarray, length: int, count: int, seed: int
) -> np.ndarray:
    """Returns distinct short contexts drawn from a text.

    Args:
        tokens: int `[N]`.
        length: Words of a context, L.
        count: Number of contexts; all there are if the text has fewer.
        seed: Of the draw, uniform over distinct contexts.

    Returns:
        int `[count, L]`, oldest word first.
    """
    seen = np.unique(np.lib.stride_tricks.sliding_window_view(tokens, length), axis=0)
    rng = np.random.default_rng(seed)
    return seen[rng.permutation(len(seen))[:count]]


# === NLTK ===


def _nltk_model(tokens: np.ndarray, order: int, timings: Timings) -> Any:
    """Returns NLTK's model of the same text, or None where NLTK is missing."""
    try:
        from nltk.lm import KneserNeyInterpolated
        from nltk.util import everygrams
    except ImportError:
        return None
    words = [str(token) for token in tokens]
    model = KneserNeyInterpolated(order)

    def fit() -> None:
        model.fit([everygrams(words, max_len=order)], vocabulary_text=words)

    timings.add(f"NLTK fit, order {order}", elapsed(fit))
    return model


def _time_nltk_pairs(
    model: Any, contexts: np.ndarray, words: np.ndarray, order: int, timings: Timings
) -> None:
    for number, word in enumerate(words):
        context = tuple(str(token) for token in contexts[number % len(contexts)])
        seconds = elapsed(partial(model.score, str(word), context))
        timings.add(f"NLTK pair, order {order}", seconds)

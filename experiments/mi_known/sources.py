"""Texts of known sources through the protocol of `segment_information`."""

from __future__ import annotations

from typing import Any

import numpy as np
import tqdm

from experiments.mi_known.config import KnownConfig
from rlm_tf.data import MarkovSource, TopicSource
from rlm_tf.evaluation import SegmentInformation, segment_information

# That of the study `bmi_source`.
_TOPICS, _WORDS, _LENGTH, _SHOWN, _STAY = 6, 20, 7, 0.95, 0.9


def markov(config: KnownConfig) -> dict[str, Any]:
    """Returns the estimates of segments of a chain, gap by gap."""
    rows = []
    for gap in config.markov_gaps:
        for seed in tqdm.tqdm(config.seeds, desc=f"gap {gap}", disable=None):
            rng = np.random.default_rng(seed)
            spread = np.full(config.markov_states, config.markov_spread)
            source = MarkovSource(rng.dirichlet(spread, size=config.markov_states))
            text = source.sample(config.markov_tokens, seed)
            found = segment_information(
                text,
                segment=config.markov_segment,
                gap=gap,
                folds=config.folds,
                seed=seed,
            )
            rows.append(
                {"gap": gap, "seed": seed, **_row(source.information(gap), found)}
            )
    return {"rows": rows}


def topic(config: KnownConfig) -> dict[str, Any]:
    """Returns the estimates of sentences with a hidden topic, by their distance."""
    source = TopicSource(_TOPICS, _WORDS, _LENGTH, shown=_SHOWN, stay=_STAY)
    tokens = _LENGTH + 1
    rows = []
    for distance in config.topic_distances:
        for seed in tqdm.tqdm(config.seeds, desc=f"distance {distance}", disable=None):
            found = segment_information(
                source.sample(config.topic_sentences, seed),
                segment=tokens,
                gap=(distance - 1) * tokens,
                folds=config.folds,
                seed=seed,
                stride=tokens,
            )
            truth = source.information(distance)
            rows.append({"distance": distance, "seed": seed, **_row(truth, found)})
    return {"rows": rows}


def _row(truth: float, found: SegmentInformation) -> dict[str, Any]:
    return {
        "information": truth,
        "mine": found.mine._asdict(),
        "nwj": found.nwj._asdict(),
        "shuffled": found.shuffled._asdict(),
        "ceiling": found.ceiling,
        "dropout": found.dropout,
        "steps": found.steps,
    }

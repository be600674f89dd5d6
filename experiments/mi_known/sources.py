"""Texts of known sources through the protocol of `segment_information`."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tqdm

from experiments.mi_known.config import KnownConfig
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.data import MarkovSource, TopicSource
from rlm_tf.evaluation import SegmentInformation, segment_information

# That of the study `bmi_source`.
_TOPICS, _WORDS, _LENGTH, _SHOWN, _STAY = 6, 20, 7, 0.95, 0.9


def markov(config: KnownConfig, folder: pathlib.Path) -> dict[str, Any]:
    """Returns the estimates of segments of a chain, gap by gap."""

    def row(gap: int, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        spread = np.full(config.markov_states, config.markov_spread)
        source = MarkovSource(rng.dirichlet(spread, size=config.markov_states))
        found = segment_information(
            source.sample(config.markov_tokens, seed),
            segment=config.markov_segment,
            gap=gap,
            folds=config.folds,
            seed=seed,
        )
        return _row(source.information(gap), found)

    return _all(config, "gap", config.markov_gaps, row, folder)


def topic(config: KnownConfig, folder: pathlib.Path) -> dict[str, Any]:
    """Returns the estimates of sentences with a hidden topic, by their distance."""
    source = TopicSource(_TOPICS, _WORDS, _LENGTH, shown=_SHOWN, stay=_STAY)
    tokens = _LENGTH + 1

    def row(distance: int, seed: int) -> dict[str, Any]:
        found = segment_information(
            source.sample(config.topic_sentences, seed),
            segment=tokens,
            gap=(distance - 1) * tokens,
            folds=config.folds,
            seed=seed,
            stride=tokens,
        )
        return _row(source.information(distance), found)

    return _all(config, "distance", config.topic_distances, row, folder)


def _all(
    config: KnownConfig,
    what: str,
    values: Sequence[int],
    row: Callable[[int, int], dict[str, Any]],
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Returns a row for each value and seed; those that are in the folder stay."""
    rows = []
    wanted = [(value, seed) for value in values for seed in config.seeds]
    for value, seed in tqdm.tqdm(wanted, disable=None):
        file = folder / f"{what}{value}_seed{seed}.json"
        if not file.exists():
            write_json(file, {what: value, "seed": seed, **row(value, seed)})
        rows.append(read_json(file, "remove it", ("mine.mean",)))
        done = rows[-1]["mine"]["mean"]
        print(f"{what} {value}, seed {seed}: {done:.3f} nats", flush=True)
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

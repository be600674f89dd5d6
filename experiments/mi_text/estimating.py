"""The parts of the study: which texts are estimated at which gaps by which critic."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.mi_text.config import (
    FAR_SEEDS,
    OTHER_SEEDS,
    REPEATED,
    TextConfig,
)
from rlm_tf.commands.information.estimating import CONTROLS, Job, estimates
from rlm_tf.commands.information.sources import Streams
from rlm_tf.data import load_corpus
from rlm_tf.evaluation import SegmentInformation
from rlm_tf.evaluation.information.critics import Kind

Row = dict[str, Any]


def real(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates every corpus whole."""
    streams = _streams(config)
    jobs = [Job(i, name, config.gap) for i, name in enumerate(streams.names)]
    return {"rows": _rows(config, streams, jobs, folder, config.real_folds)}


def gaps(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates corpora of one length at every gap."""
    streams = _cut(_streams(config))
    jobs = [
        Job(i, name, gap)
        for i, name in enumerate(streams.names)
        for gap in config.gaps_of
    ]
    return {"rows": _rows(config, streams, jobs, folder, config.gaps_folds)}


def critics(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates corpora of one length by every critic."""
    return {"rows": _by_critic(config, folder, config.gap, config.critics_folds)}


def far(config: TextConfig, folder: pathlib.Path) -> Row:
    """Does the same at a gap where texts differ, training for longer."""
    rows = _by_critic(
        config,
        folder,
        config.far_gap,
        config.far_folds,
        most_steps=config.far_steps,
        dropout=config.far_dropout,
        control=False,
    )
    return {"rows": [{**row, "most_steps": config.far_steps} for row in rows]}


def _by_critic(
    config: TextConfig, folder: pathlib.Path, gap: int, computed: int, **options: Any
) -> list[Row]:
    """Returns the rows of corpora of one length at a gap, by every critic."""
    streams = _cut(_streams(config))
    jobs = [Job(i, name, gap) for i, name in enumerate(streams.names)]
    rows: list[Row] = []
    for critic in config.critics_of:
        place = folder / critic
        found = _rows(
            config,
            streams,
            jobs,
            place,
            computed,
            critic,  # type: ignore[arg-type]
            **options,
        )
        rows += [{**row, "critic": critic} for row in found]
    return rows


def lengths(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates the beginnings of every corpus, and each whole."""
    whole = _streams(config)
    rows: list[Row] = []
    for length in (*config.lengths_of, None):
        streams = whole if length is None else _cut(whole, length)
        jobs = [Job(i, name, config.gap) for i, name in enumerate(streams.names)]
        place = folder / str(length or "all")
        rows += _rows(config, streams, jobs, place, config.lengths_folds)
    return {"rows": rows}


def controls(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates corpora of one length, words or sentences in random order."""
    streams = _cut(_streams(config))
    jobs = [
        Job(i, name, config.gap, what)
        for i, name in enumerate(streams.names)
        for what in CONTROLS
    ]
    return {"rows": _rows(config, streams, jobs, folder, config.controls_folds)}


def steps(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates every corpus whole by critics that are trained for longer."""
    streams = _streams(config)
    jobs = [Job(i, name, config.gap) for i, name in enumerate(streams.names)]
    rows: list[Row] = []
    for most in config.steps_of:
        for rate in config.steps_dropouts:
            place = folder / f"{most}-{rate:g}"
            options: Row = {"most_steps": most, "dropout": rate, "control": False}
            found = _rows(config, streams, jobs, place, config.steps_folds, **options)
            rows += [{**row, "most_steps": most} for row in found]
    return {"rows": rows}


def seed_1(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates again what most is said of, with other first weights and batches."""
    return _repeated(OTHER_SEEDS["seed_1"], config, folder)


def seed_2(config: TextConfig, folder: pathlib.Path) -> Row:
    """Estimates the same once more."""
    return _repeated(OTHER_SEEDS["seed_2"], config, folder)


def far_1(config: TextConfig, folder: pathlib.Path) -> Row:
    """Does what `far` does with other first weights and batches."""
    return _far_again(FAR_SEEDS["far_1"], config, folder)


def far_2(config: TextConfig, folder: pathlib.Path) -> Row:
    """Does the same once more."""
    return _far_again(FAR_SEEDS["far_2"], config, folder)


def _far_again(seed: int, config: TextConfig, folder: pathlib.Path) -> Row:
    rows = far(dataclasses.replace(config, seed=seed), folder)["rows"]
    return {"rows": [{**row, "part": "far", "seed": seed} for row in rows]}


def _repeated(seed: int, config: TextConfig, folder: pathlib.Path) -> Row:
    makers = {"gaps": gaps, "lengths": lengths, "controls": controls}
    other = dataclasses.replace(config, seed=seed)
    rows: list[Row] = []
    for part in REPEATED:
        found = makers[part](other, folder / part)["rows"]
        rows += [{**row, "part": part, "seed": seed} for row in found]
    return {"rows": rows}


def _rows(
    config: TextConfig,
    streams: Streams,
    jobs: Sequence[Job],
    folder: pathlib.Path,
    computed: int,
    critic: Kind = "separable",
    **options: Any,
) -> list[Row]:
    """Returns the rows of jobs, of each the first so many folds."""
    found = estimates(
        jobs,
        streams,
        folder / "folds",
        segment=config.segment,
        folds=config.folds,
        critic=critic,
        seed=config.seed,
        computed=computed,
        **options,
    )
    return [_row(job, info, len(streams.tokens[job.text])) for job, info in found]


def _row(job: Job, info: SegmentInformation, tokens: int) -> Row:
    row: Row = {
        "text": job.name,
        "gap": job.gap,
        "tokens": tokens,
        "mine": info.mine._asdict(),
        "nwj": info.nwj._asdict(),
        "ceiling": info.ceiling,
        "dropout": info.dropout,
        "steps": info.steps,
        "capped": info.capped,
    }
    if job.shuffled:
        return {**row, "shuffled_order": job.shuffled}
    if math.isnan(info.shuffled.mean):
        return row
    return {**row, "shuffled": info.shuffled._asdict()}


def _streams(config: TextConfig) -> Streams:
    """Returns the training texts, ends of lines included, as the paper has them."""
    corpora = [load_corpus(name) for name in config.corpora]
    most = config.most_tokens
    texts = [np.asarray(corpus.train[:most], np.int32) for corpus in corpora]
    ends = [
        text == corpus.vocabulary.eos_id
        for text, corpus in zip(texts, corpora, strict=True)
    ]
    sizes = [len(corpus.vocabulary) for corpus in corpora]
    return Streams(
        list(config.corpora), texts, ends, max(sizes), 0.0, [len(t) for t in texts]
    )


def _cut(streams: Streams, length: int | None = None) -> Streams:
    """Returns the beginnings of texts, by default as long as the shortest."""
    size = min(streams.lengths) if length is None else length
    return streams._replace(
        tokens=[text[:size] for text in streams.tokens],
        ends=[ends[:size] for ends in streams.ends],
    )

"""Estimates of all texts and gaps, fold by fold; what was killed goes on."""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlm_tf.command_line.json_files import read_json, with_nulls, write_json
from rlm_tf.commands.information.sources import Streams, shuffled
from rlm_tf.evaluation import SegmentInformation
from rlm_tf.evaluation.information.critic_training import MOST_STEPS
from rlm_tf.evaluation.information.critics import Kind
from rlm_tf.evaluation.information.segment_information import (
    FoldInformation,
    SegmentEstimator,
    check_length,
    joint_information,
)

# Of the folds of a text only so many are computed for a control, which needs no small
# error. Its critics must learn on as much text as those of the text.
_CONTROL_FOLDS = 3
# With fewer sentences their order is too much like that of the text.
_LEAST_SENTENCES = 50
_REMEDY = "remove it, or say --overwrite"
CONTROLS = ("words", "sentences")


class Job(NamedTuple):
    """One text at one gap.

    Attributes:
        text: Place of the text.
        name: Of the text.
        gap: Tokens between segments.
        shuffled: "words" or "sentences": what is in random order; "": nothing.
    """

    text: int
    name: str
    gap: int
    shuffled: str = ""

    @property
    def file(self) -> str:
        """Name of the file of its folds."""
        kind = f"_{self.shuffled}" if self.shuffled else ""
        return f"text{self.text + 1}{kind}_gap{self.gap}.json"

    @property
    def label(self) -> str:
        """What a person reads."""
        kind = f", {self.shuffled} shuffled" if self.shuffled else ""
        return f"{self.name}{kind}, gap {self.gap}"


def jobs_of(streams: Streams, gaps: Sequence[int], controls: bool) -> list[Job]:
    """Returns what is to be estimated, controls of the first text last.

    A text of few sentences has no control of shuffled ones.
    """
    names = list(enumerate(streams.names))
    jobs = [Job(place, name, gap) for place, name in names for gap in gaps]
    if controls:
        kinds = [*CONTROLS]
        if np.count_nonzero(streams.ends[0]) < _LEAST_SENTENCES:
            kinds.remove("sentences")
        jobs += [Job(0, streams.names[0], gap, what) for what in kinds for gap in gaps]
    return jobs


def check_lengths(
    streams: Streams, gaps: Sequence[int], segment: int, folds: int
) -> None:
    """Raises ValueError if the shortest text is too short; names it."""
    shortest = min(range(len(streams.names)), key=lambda i: streams.lengths[i])
    try:
        check_length(streams.lengths[shortest], segment, max(gaps), folds)
    except ValueError as error:
        reason = str(error).partition(": ")[2]
        for name, flag in (("folds", "folds"), ("segment", "segment"), ("gap", "gaps")):
            reason = reason.replace(f"`{name}`", f"--{flag}")
        raise ValueError(f"{streams.names[shortest]}: {reason}") from None


def estimates(
    jobs: Sequence[Job],
    streams: Streams,
    folder: pathlib.Path,
    *,
    segment: int,
    folds: int,
    critic: Kind,
    seed: int,
    computed: int | None = None,
    dropout: float | None = None,
    most_steps: int = MOST_STEPS,
    control: bool = True,
) -> Iterator[tuple[Job, SegmentInformation]]:
    """Gives each job with what its folds say.

    Args:
        jobs: What is estimated.
        streams: The texts.
        folder: Of the files of finished folds, which are not computed again.
        segment: Tokens of a segment.
        folds: Of an estimate.
        critic: What kind.
        seed: Of critics, batches and shuffling.
        computed: How many of the folds are; None: all, but of shuffled texts three.
        dropout: Share of positions dropped in training; None: the best of some.
        most_steps: Of a critic.
        control: Whether pairs half a block apart are estimated, too; never of shuffled
            texts.

    Raises:
        ValueError: If a file of folds is damaged.
    """
    for number, job in enumerate(jobs, 1):
        tokens = streams.tokens[job.text]
        wanted = _CONTROL_FOLDS if job.shuffled else folds
        wanted = min(folds, wanted if computed is None else computed)
        if job.shuffled:
            tokens = shuffled(tokens, streams.ends[job.text], job.shuffled, seed)
        file = folder / job.file
        done = _read(file)
        estimator = None
        began = time.perf_counter()
        for fold in range(len(done), wanted):
            if estimator is None:
                estimator = SegmentEstimator(
                    tokens,
                    segment=segment,
                    gap=job.gap,
                    folds=folds,
                    seed=seed,
                    critic=critic,
                    most_steps=most_steps,
                )
            rate = done[0].dropout if done else dropout
            with_control = control and not job.shuffled
            found = estimator.fold(fold, rate, control=with_control)
            done.append(found)
            write_json(file, {"folds": [with_nulls(f._asdict()) for f in done]})
            seconds = time.perf_counter() - began
            print(
                f"[{number}/{len(jobs)}] {job.label}: fold {fold + 1}/{wanted}  "
                f"{found.mine:.3f} nats  {seconds:.0f} s",
                flush=True,
            )
        yield job, joint_information(done[:wanted])


def _read(file: pathlib.Path) -> list[FoldInformation]:
    if not file.exists():
        return []
    rows: list[dict[str, Any]] = read_json(file, _REMEDY, ("folds",))["folds"]
    try:
        return [FoldInformation(**_with_nan(row)) for row in rows]
    except (TypeError, AttributeError):
        raise ValueError(f"{file} is damaged (its folds); {_REMEDY}.") from None


def _with_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {key: math.nan if value is None else value for key, value in row.items()}

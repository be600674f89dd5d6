"""How much two segments of a text, some tokens apart, tell of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_option, checked_tokens
from rlm_tf.evaluation.information.critic_training import (
    MOST_STEPS,
    OBJECTIVES,
    CriticTrainer,
    Objective,
    Split,
)
from rlm_tf.evaluation.information.critics import KINDS, Kind

_LEAST_FOLDS = 3
# Test pairs of a fold; with fewer an estimate says nothing at all.
_LEAST_PAIRS = 5
# Ids from here on are numbered anew.
_MOST_ROWS = 1_000_000
# Pairs that a critic is validated and tested on, at most.
_MOST_PAIRS = 2000
# Shares of positions that are dropped in training; the best is found on fold 0.
_DROPOUTS = (0.0, 0.3, 0.7)


class Estimate(NamedTuple):
    """A number and how far folds differ in it, in nats.

    Attributes:
        mean: Over folds.
        deviation: Standard deviation over folds.
        standard_error: Of the mean, deviation / sqrt(folds). Folds share training
            text: it is a lower bound.
        folds: The values.
    """

    mean: float
    deviation: float
    standard_error: float
    folds: list[float]


class SegmentInformation(NamedTuple):
    """Estimates of the mutual information of two segments.

    Attributes:
        mine: Eq. (4) of Cao and Xu (2019) on test pairs.
        nwj: The bound of Nguyen, Wainwright and Jordan with the validation pairs'
            constant: of no sample more on average than the information is, but of
            the fold that is tested on the pairs by which the dropout was chosen.
        shuffled: `mine` of critics trained and tested on pairs of segments half a block
            apart, which share next to nothing.
        ceiling: Log of the number of test pairs drawn apart: what lies near it means
            nothing (folds of few pairs may even be above).
        pairs: Test pairs of a fold that occur together.
        steps: Training steps of each fold's best critic.
        dropout: Share of positions that were dropped in training.
        capped: Folds whose training ended at `most_steps`, not by validation: theirs is
            low.
    """

    mine: Estimate
    nwj: Estimate
    shuffled: Estimate
    ceiling: float
    pairs: int
    steps: list[int]
    dropout: float
    capped: int = 0


class FoldInformation(NamedTuple):
    """What one fold says.

    Attributes:
        mine: See `SegmentInformation`.
        nwj: Likewise.
        shuffled: Likewise; nan where no such critic was trained.
        pairs: Test pairs.
        apart: Test pairs drawn apart.
        steps: Training steps of the best critic; 0: it finds nothing.
        dropout: Share of positions that were dropped in training.
        capped: Whether training ended at `most_steps`, not by validation.
    """

    mine: float
    nwj: float
    shuffled: float
    pairs: int
    apart: int
    steps: int
    dropout: float
    capped: bool = False


def check_length(length: int, segment: int, gap: int, folds: int) -> None:
    """Raises ValueError if a text is too short for some pairs in each fold."""
    least = folds * ((_LEAST_PAIRS + 1) * segment + gap)
    if length < least:
        raise ValueError(
            f"segment_information: {folds} folds of pairs of {segment} tokens, {gap:,} "
            f"apart, need {least:,} tokens; the text has {length:,}. Give fewer "
            "`folds`, a shorter `segment`, a smaller `gap` or more text."
        )


class SegmentEstimator:
    """Estimates by folds, each of which may be computed apart: `segment_information`.

    What a fold gives is a function of the arguments and of its number, whatever was
    computed before, but for the share of dropped positions, which the first one finds.

    Args:
        tokens: See `segment_information`, as all others.
        segment: L.
        gap: Tokens between X and Y.
        folds: At least 3.
        seed: Of critics and batches.
        critic: What kind.
        objective: What critics are trained by.
        stride: X begins at multiples of it.
        most_steps: After which critics are trained no further.

    Raises:
        ValueError: If the text is too short for the folds, or an argument out of range.
    """

    def __init__(
        self,
        tokens: npt.ArrayLike,
        *,
        segment: int = 40,
        gap: int = 10,
        folds: int = 10,
        seed: int = 0,
        critic: Kind = "separable",
        objective: Objective = "jsd",
        stride: int = 1,
        most_steps: int = MOST_STEPS,
    ) -> None:
        name = "segment_information"
        check_integer(name, "segment", segment, 1)
        check_integer(name, "gap", gap, 0)
        check_integer(name, "folds", folds, _LEAST_FOLDS)
        check_integer(name, "seed", seed, 0)
        check_integer(name, "stride", stride, 1)
        check_integer(name, "most_steps", most_steps, 1)
        check_option(name, "critic", critic, KINDS)
        check_option(name, "objective", objective, OBJECTIVES)
        stream = checked_tokens(name, tokens, np.iinfo(np.int32).max, dtype=np.int32)
        check_length(len(stream), segment, gap, folds)
        if stream.max() >= _MOST_ROWS:
            # Critics have a row for each id up to the largest one.
            stream = np.unique(stream, return_inverse=True)[1].astype(np.int32)
        self.segment = segment
        self.gap = gap
        self.folds = folds
        self.seed = seed
        self.stride = stride
        self._edges = np.linspace(0, len(stream), folds + 1).astype(np.int64)
        fewest = min(len(self._spaced(block).first) for block in range(folds))
        if fewest < _LEAST_PAIRS:
            raise ValueError(
                f"{name}: with `stride` {stride} a fold has {fewest} pairs to be "
                f"tested on, at least {_LEAST_PAIRS} are needed. Give fewer `folds`, "
                "a shorter `stride` or more text."
            )
        self._trainer = CriticTrainer(
            stream, segment, critic, objective, seed, most_steps
        )

    def fold(
        self, number: int, dropout: float | None = None, *, control: bool = True
    ) -> FoldInformation:
        """Returns what a fold says.

        Args:
            number: Of the fold, from 0.
            dropout: Share of positions dropped in training; None: the best of some.
            control: Whether a critic of pairs that share nothing is trained, too.
        """
        blocks = [(number + i) % self.folds for i in range(self.folds)]
        splits = [*map(self._spaced, blocks[:2]), self._joined(blocks[2:])]
        test, valid, train = splits
        rng = np.random.default_rng([self.seed, number])
        tried = [
            (rate, self._trainer.estimate(train, valid, test, rng, rate))
            for rate in (_DROPOUTS if dropout is None else (dropout,))
        ]
        rate, found = max(tried, key=lambda each: each[1].valid)
        shuffled, apart = math.nan, int(np.sum(test.apart(self.segment)))
        if control:
            others = [_half_turned(self._spaced(block)) for block in blocks[:2]]
            rest = self._joined(blocks[2:], half_turned=True)
            shuffled = self._trainer.estimate(
                rest, others[1], others[0], rng, rate
            ).mine
        return FoldInformation(
            found.mine,
            found.nwj,
            shuffled,
            len(test.first),
            apart,
            found.steps,
            rate,
            found.capped,
        )

    def _spaced(self, block: int) -> Split:
        """Returns pairs of a block whose X do not overlap."""
        begin, end = self._edges[block], self._edges[block + 1]
        segment, span = self.segment, 2 * self.segment + self.gap
        number = (end - begin - span) // segment + 1
        step = max(segment, -(-number // _MOST_PAIRS) * segment)
        begin, step = (-(-size // self.stride) * self.stride for size in (begin, step))
        first = np.arange(begin, end - span + 1, step)
        return Split(first, first + segment + self.gap)

    def _joined(self, blocks: list[int], half_turned: bool = False) -> Split:
        """Returns all pairs of some blocks."""
        splits = []
        for block in blocks:
            end = self._edges[block + 1] - 2 * self.segment - self.gap
            first = np.arange(self._edges[block], end + 1)
            first = first[first % self.stride == 0]
            splits.append(Split(first, first + self.segment + self.gap))
        if half_turned:
            splits = [*map(_half_turned, splits)]
        return Split(*(np.concatenate(side) for side in zip(*splits, strict=True)))


def _half_turned(block: Split) -> Split:
    """Returns each X of a block with the Y of half a block behind.

    Unlike pairs in random order, neighbours stay neighbours: what a critic can learn by
    heart of true pairs, it can of these.
    """
    return Split(block.first, np.roll(block.second, len(block.second) // 2))


def segment_information(
    tokens: npt.ArrayLike,
    *,
    segment: int = 40,
    gap: int = 10,
    folds: int = 10,
    seed: int = 0,
    critic: Kind = "separable",
    objective: Objective = "jsd",
    stride: int = 1,
    most_steps: int = MOST_STEPS,
) -> SegmentInformation:
    """Estimates I(X; Y) of segments X and Y with `gap` tokens between them.

    The protocol of Cao and Xu (2019, section 4.2), where it says nothing, as here: the
    text is cut into `folds` contiguous blocks, of which fold k tests a critic, k + 1
    stops its training, and the others train it; no pair lies over an edge. A critic is
    trained by Eq. (6) on all pairs of a batch, until `mine` of the validation pairs has
    not risen for some time; where it never rises above 0, the estimate is 0. How many
    positions are dropped meanwhile is chosen on the validation pairs of the first fold
    (block 1, which fold 1 tests): none where words are few, most in real text. Pairs
    drawn apart that share tokens do not count.

    The estimate grows with the text, as critics need examples: compare texts of one
    length.

    Args:
        tokens: int `[N]`.
        segment: Tokens of a segment.
        gap: Tokens between the two.
        folds: At least 3.
        seed: Of critics and batches.
        critic: "separable", "mlp" or "large".
        objective: What critics are trained by: "jsd" (Eq. 6), "nwj", or "info_nce",
            with which scores are normalised for each x by those of its fold, so that
            `nwj` is no bound then.
        stride: X begins at multiples of it: where all sentences have one length,
            segments may be sentences.
        most_steps: After which a critic is trained no further, though validation still
            rises: `capped` says how often. Millions of tokens need more than 4,000.

    Raises:
        ValueError: If the text is too short for the folds, or an argument out of range.
    """
    estimator = SegmentEstimator(
        tokens,
        segment=segment,
        gap=gap,
        folds=folds,
        seed=seed,
        critic=critic,
        objective=objective,
        stride=stride,
        most_steps=most_steps,
    )
    found = [estimator.fold(0)]
    found += [estimator.fold(k, found[0].dropout) for k in range(1, folds)]
    return joint_information(found)


def joint_information(folds: Sequence[FoldInformation]) -> SegmentInformation:
    """Returns what folds say together."""
    mine, nwj, shuffled, *_ = zip(*folds, strict=True)
    return SegmentInformation(
        mine=estimate(mine),
        nwj=estimate(nwj),
        shuffled=estimate(shuffled),
        ceiling=math.log(max(min(fold.apart for fold in folds), 1)),
        pairs=min(fold.pairs for fold in folds),
        steps=[fold.steps for fold in folds],
        dropout=folds[0].dropout,
        capped=sum(fold.capped for fold in folds),
    )


def estimate(values: Sequence[float]) -> Estimate:
    """Summarises the values of folds."""
    deviation = float(np.std(values, ddof=1))
    error = deviation / math.sqrt(len(values))
    return Estimate(float(np.mean(values)), deviation, error, list(values))

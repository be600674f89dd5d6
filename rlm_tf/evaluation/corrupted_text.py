"""Held-out text that a frozen generator has corrupted once, to compare detectors on."""

from __future__ import annotations

import os
import pathlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data import Masking, Segments
from rlm_tf.evaluation.detection import DetectionScores, detection_scores
from rlm_tf.file_errors import naming
from rlm_tf.models import Electra, MaskedLanguageModel
from rlm_tf.models.encoders.electra import drawable
from rlm_tf.objectives.replaced_tokens import corrupted_tokens, detection_labels


class CorruptedText(NamedTuple):
    """Rows of text, some of whose tokens were replaced.

    Attributes:
        tokens: int32 `[N, T]`, as they are shown.
        labels: bool `[N, T]`, True where replaced.
        padding: bool `[N, T]`, True where there is no token.
        original: int32 `[N, T]`.
        segments: int32 `[N, T]`, of which text each token is; None: there is one.
    """

    tokens: np.ndarray
    labels: np.ndarray
    padding: np.ndarray
    original: np.ndarray
    segments: np.ndarray | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a `.npz` file, beside its place first."""
        path = pathlib.Path(path)
        beside = path.with_name(f".{path.name}.{os.getpid()}.npz")
        with naming(path):
            given = {k: v for k, v in self._asdict().items() if v is not None}
            np.savez_compressed(beside, **given)
            beside.replace(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CorruptedText:
        """Reads what `save` has written.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is another file.
        """
        try:
            with np.load(path) as stored:
                # Of another file a field is missing, or one that is none is there.
                return cls(**{name: stored[name] for name in stored.files})
        except (KeyError, OSError, ValueError, TypeError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise ValueError(f"{path} is no corrupted text: {error}.") from error


class Detection(NamedTuple):
    """How well a detector finds what was replaced.

    Attributes:
        scores: Accuracy, precision, recall and F1 of replaced tokens at 0.5.
        cross_entropy: Nats a token.
        by_frequency: F1 of tokens as rare as each group's, see `detect`.
    """

    scores: DetectionScores
    cross_entropy: float
    by_frequency: list[DetectionScores]


def corrupt(
    generator: MaskedLanguageModel,
    segments: Segments,
    masking: Masking,
    seed: int = 0,
    *,
    batch_size: int = 64,
) -> CorruptedText:
    """Replaces masked tokens by draws of a generator, once.

    Detectors that are scored on what their own generators replace cannot be compared:
    the better a generator, the harder its text (Dong 2025, appendix A.4).

    Args:
        generator: A masked language model that was trained alone.
        segments: Rows of held-out text.
        masking: Of it.
        seed: Of the draws.
        batch_size: Rows that are read at once. It changes no mask, and no uniform
            number that a token is drawn by.

    Raises:
        ValueError: If `seed` is negative, or `batch_size` is not positive.
    """
    check_integer("corrupt", "seed", seed, 0)
    check_integer("corrupt", "batch_size", batch_size, 1)
    rng = np.random.default_rng(seed)

    @tf.function(reduce_retracing=True)
    def corrupted(
        original: tf.Tensor,
        shown: tf.Tensor,
        positions: tf.Tensor,
        places: tf.Tensor,
        uniform: tf.Tensor,
        segments: tf.Tensor | None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        logits = generator.logits_at(shown, places, segments)
        drawn = corrupted_tokens(
            drawable(logits, generator.encoder.padding_id),
            tf.gather_nd(original, places),
            tf.ones(tf.shape(places)[:1], tf.bool),
            uniform,
        )
        tokens = tf.tensor_scatter_nd_update(original, places, drawn)
        return tokens, detection_labels(original, tokens, positions)

    parts = []
    masked_alike = masking.of_all(segments.in_order())
    for (x,) in masked_alike.unbatch().batch(batch_size):
        original, _, positions = x[:3]
        places = tf.where(positions > 0)
        uniform = tf.constant(rng.random(int(places.shape[0])))
        # Encoders without segments are given none.
        own = tuple(x[3:]) if generator.encoder.num_segments else ()
        tokens, labels = corrupted(*x[:3], places, uniform, *(own or (None,)))
        parts.append((tokens, labels, original == segments.ids.padding, original, *own))
    return CorruptedText(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def detect(
    model: Electra,
    text: CorruptedText,
    *,
    counts: npt.ArrayLike | None = None,
    groups: int = 5,
    batch_size: int = 64,
) -> Detection:
    """Scores a detector on a corrupted text.

    Args:
        model: Its detector is used.
        text: The text.
        counts: How often each token is in the training text, int `[V]`; None: scores by
            frequency are left out.
        groups: Of original tokens, rare ones first, of about as many occurrences each.
        batch_size: Rows that are read at once.
    """
    check_integer("detect", "groups", groups, 1)
    check_integer("detect", "batch_size", batch_size, 1)
    run = tf.function(lambda rows: model(rows), reduce_retracing=True)

    def rows(first: int) -> Any:
        own = slice(first, first + batch_size)
        tokens = tf.constant(text.tokens[own])
        if text.segments is None or not model.discriminator.num_segments:
            return tokens
        return tokens, tf.constant(text.segments[own])

    logits = np.concatenate(
        [
            tf.cast(run(rows(first)), tf.float64)
            for first in range(0, len(text.tokens), batch_size)
        ]
    )
    present = ~text.padding
    losses = np.logaddexp(0, logits) - text.labels * logits
    probs = 1 / (1 + np.exp(-logits))
    by_frequency = []
    if counts is not None:
        often = np.asarray(counts)[text.original][present]
        # Ties by their place: tokens of one count may be in two groups.
        order = np.argsort(often, kind="stable")
        for part in np.array_split(order, groups):
            by_frequency.append(
                detection_scores(probs[present][part], text.labels[present][part])
            )
    return Detection(
        detection_scores(probs, text.labels, text.padding),
        float(losses[present].mean()),
        by_frequency,
    )

"""Noising of training text, the restricted baseline of Xie et al. 2017."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.data.batches.contiguous_batches import Element
from rlm_tf.data.batches.noising_statistics import (
    Discounting,
    Kind,
    Sides,
    Variant,
    bigram_statistics,
    noising_probabilities,
    replacement_probabilities,
)
from rlm_tf.host_tensors import host_tensor

_ALLOWED = {
    "kind": ("blank", "unigram", "bigram-kn"),
    "discounting": ("constant", "absolute", "modified"),
    "sides": ("inputs", "targets", "both"),
    "variant": ("paper", "authors"),
}


class Noising:
    """Replaces words of the training batches by draws from a restricted model.

    At every position with input word x an event of probability gamma(x) decides; if it
    happens the input, the target or both (two independent draws) are replaced by words
    from q. The copy of the word in the neighbouring position stays as it is. Positions
    of weight 0 and start flags are untouched. `noising_statistics` has the formulas of
    gamma and q.

    The published settings: `blank` and `unigram` on inputs with constant gamma0;
    `bigram-kn` on both with absolute or modified discounting; gamma0 0.2 or 0.6.

    Used as `data = ResumableBatches(batches, transform=noising)` (`rlm_tf.training`),
    which draws anew in every epoch: `fit(data.dataset, ...)` with an `ExactResume` or
    `data.follow_epochs()` among its callbacks. `batches.dataset(transform=noising)` is
    one pass, and `fit()` for several epochs would see the same noise in each. The draws
    are a function of (seed, epoch, step), and are made for the global batch before it
    is split over replicas.

    Attributes:
        gamma: Probability of noising by input word, float64 `[V]`.
        q: Distribution of the replacements, float64 `[V]`.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        vocabulary_size: int,
        *,
        kind: Kind = "bigram-kn",
        gamma0: float = 0.2,
        discounting: Discounting | None = None,
        sides: Sides | None = None,
        blank_id: int | None = None,
        variant: Variant = "paper",
        seed: int = 0,
    ) -> None:
        """Counts the training text.

        Args:
            tokens: The training text, integers `[N]`.
            vocabulary_size: V, `blank_id` included.
            kind: `blank`, `unigram` or `bigram-kn`.
            gamma0: Strength of the noise, in [0, 1].
            discounting: `constant`, `absolute` or `modified`; None means absolute for
                `bigram-kn`, constant for the others.
            sides: `inputs`, `targets` or `both`; None means both for `bigram-kn`,
                inputs for the others.
            blank_id: Token that stands for a blank; kind `blank` only.
            variant: Whether q is `paper`'s or the `authors`', which differ in a word
                without a context.
            seed: Seed of the draws.

        Raises:
            ValueError: If an option is unknown, `gamma0` or `blank_id` is out of range,
                or the tokens do not fit the vocabulary.
        """
        bigram = kind == "bigram-kn"
        self.kind: Kind = kind
        self.gamma0 = float(gamma0)
        self.discounting: Discounting = discounting or (
            "absolute" if bigram else "constant"
        )
        self.sides: Sides = sides or ("both" if bigram else "inputs")
        self.blank_id = blank_id
        self.variant: Variant = variant
        self.seed = seed
        for option, allowed in _ALLOWED.items():
            if getattr(self, option) not in allowed:
                raise ValueError(
                    f"Noising: {option} must be one of {', '.join(allowed)}; found "
                    f"{getattr(self, option)!r}."
                )
        if not 0.0 <= self.gamma0 <= 1.0:
            raise ValueError(f"Noising: gamma0 must be in [0, 1], found {gamma0}.")
        if (kind == "blank") != (blank_id is not None):
            raise ValueError(
                "Noising: `blank_id` belongs to kind 'blank' and to no other; found "
                f"kind {kind!r}, blank_id {blank_id}."
            )
        if blank_id is not None and not 0 <= blank_id < vocabulary_size:
            raise ValueError(
                f"Noising: blank_id must be in [0, {vocabulary_size}), found "
                f"{blank_id}."
            )
        statistics = bigram_statistics(tokens, vocabulary_size)
        self.gamma = noising_probabilities(statistics, self.gamma0, self.discounting)
        self.q = replacement_probabilities(statistics, kind, blank_id, variant)
        # Inverse distribution function over the words of positive probability only, so
        # that no rounding of the last step can draw another.
        self._words = np.flatnonzero(self.q)
        self._cumulative = np.cumsum(self.q[self._words])[:-1]

    def get_config(self) -> dict[str, Any]:
        """Returns the options; the training text is given again."""
        names = ("kind", "gamma0", "discounting", "sides", "blank_id", "variant")
        return {name: getattr(self, name) for name in (*names, "seed")}

    def __call__(self, element: Element, epoch: tf.Tensor, step: tf.Tensor) -> Element:
        """Noises one element.

        Args:
            element: `((tokens [B, T], start [B]), next_tokens [B, T], weights [B, T])`.
            epoch: Integer scalar.
            step: Integer scalar, the step within the epoch.

        Returns:
            The element with some tokens replaced.
        """
        (tokens, start), next_tokens, weights = element
        seed = tf.constant([self.seed, 0], tf.int64)
        for data in (epoch, step):
            seed = tf.random.experimental.stateless_fold_in(seed, data)
        event_seed, input_seed, target_seed = tf.unstack(tf.random.split(seed, 3))
        shape = tf.shape(tokens)
        event = tf.random.stateless_uniform(shape, event_seed, dtype=tf.float64)
        noised = (event < tf.gather(host_tensor(self.gamma), tokens)) & (weights > 0)
        if self.sides != "targets":
            tokens = tf.where(noised, self._draw(shape, input_seed), tokens)
        if self.sides != "inputs":
            next_tokens = tf.where(noised, self._draw(shape, target_seed), next_tokens)
        return (tokens, start), next_tokens, weights

    def _draw(self, shape: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        # float64: with float32 the rarest words would get multiples of 2^-23.
        uniform = tf.random.stateless_uniform(
            [tf.reduce_prod(shape)], seed, dtype=tf.float64
        )
        index = tf.searchsorted(self._cumulative, uniform, side="right")
        words = tf.gather(host_tensor(self._words.astype(np.int32)), index)
        return tf.reshape(words, shape)

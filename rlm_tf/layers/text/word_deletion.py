"""Deletes words of documents as they are trained on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_range
from rlm_tf.host_tensors import host_tensor
from rlm_tf.labelling.deletion import deletion_counts
from rlm_tf.layers.text.deletion import random_choice, whole_words, without, words_with
from rlm_tf.layers.text.keyed_draws import keyed_uniforms

Seeds = Literal["alike", "kept", "first", "only"]
SEEDS: tuple[Seeds, ...] = ("alike", "kept", "first", "only")


class WordDeletion:
    """Deletes words, so that a classifier does not learn the rule that labelled them.

    Used as `ResumableBatches(DocumentBatches(...), transform=WordDeletion(...))`. Of n
    words `labelling.deletion_counts(n, ratio)` go, all sets alike, in each epoch
    others: draws depend on (seed, epoch, document id) alone, so that batches, replicas
    and resumed runs change nothing (Dong 2025, section 3.3). The others keep their
    order.

    Args:
        ratio: Share of the words that goes, in [0, 1].
        places: bool `[N, T]`, where seeds are in the documents: those of a document's
            own label, as published, or of all classes. None: there are none.
        seeds: What becomes of them: they are words like others ("alike"), never deleted
            and not counted ("kept"), all deleted before ("first"), or all deleted and
            nothing else ("only", whatever `ratio`).
        starts: bool `[N, T]`, pieces that begin a word; whole words go, also those of
            which one piece is in `places`. None: each token is a word.
        fixed: Whether every epoch has the same words.
        keep: Words that stay at least, of those that are drawn from.
        spared: Ids that are no words, and stay: [CLS], [SEP].
        padding: Id of what fills rows up.
        seed: Of the draws.

    Raises:
        ValueError: If an option or a number is out of range, shapes differ, or seeds
            are to be treated that are nowhere.
    """

    def __init__(
        self,
        ratio: float,
        places: npt.ArrayLike | None = None,
        *,
        seeds: Seeds = "alike",
        starts: npt.ArrayLike | None = None,
        fixed: bool = False,
        keep: int = 1,
        spared: Collection[int] = (),
        padding: int = 0,
        seed: int = 0,
    ) -> None:
        name = type(self).__name__
        check_range(name, 0.0, 1.0, ratio=ratio)
        check_option(name, "seeds", seeds, SEEDS)
        check_integer(name, "keep", keep, 0)
        check_integer(name, "seed", seed, 0)
        arrays = {
            argument: np.asarray(value, bool)
            for argument, value in (("places", places), ("starts", starts))
            if value is not None
        }
        if len({array.shape for array in arrays.values()}) > 1 or any(
            array.ndim != 2 for array in arrays.values()
        ):
            shapes = ", ".join(str(list(array.shape)) for array in arrays.values())
            raise ValueError(f"{name}: `places` and `starts` must be [N, T]: {shapes}.")
        if seeds != "alike" and places is None:
            raise ValueError(f"{name}: `seeds={seeds!r}` needs `places`.")
        self.ratio = ratio
        self.places = arrays.get("places")
        self.seeds = seeds
        self.starts = arrays.get("starts")
        self.fixed = fixed
        self.keep = keep
        self.spared = tuple(spared)
        self.padding = padding
        self.seed = seed

    def __call__(self, element: Any, epoch: Any, step: Any) -> Any:
        """Deletes words of a batch `((tokens, ids), ...)`; the rest stays as it is."""
        (tokens, ids), *others = element
        kept, _ = self.without(tokens, ids, 0 if self.fixed else epoch)
        return ((kept, ids), *others)

    def without(
        self, tokens: tf.Tensor, ids: tf.Tensor, epoch: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns what is left of documents, int `[B, T]`, and how many tokens `[B]`.

        Args:
            tokens: int `[B, T]`.
            ids: int `[B]`, the documents' places in `places`, and keys of draws.
            epoch: Integer scalar.
        """
        return without(tokens, self.deleted(tokens, ids, epoch), self.padding)

    def deleted(self, tokens: tf.Tensor, ids: tf.Tensor, epoch: Any) -> tf.Tensor:
        """Returns which tokens go, bool `[B, T]`; arguments as those of `without`."""
        length = tokens.shape[1]
        if length is None:
            raise ValueError("WordDeletion: the length T of tokens must be known.")
        present = tokens != self.padding
        for own in self.spared:
            present &= tokens != own
        starts = self._rows(self.starts, ids)
        words = present
        if starts is not None:
            # What is spared begins a word, which is none.
            starts = starts | ~present
            words = present & starts
        is_alike = self.seeds == "alike"
        seeds = None if is_alike else self._rows(self.places, ids)
        if seeds is None:
            seeds = tf.zeros_like(words)
        elif starts is not None:
            seeds = words_with(seeds, starts)
        seeds &= words
        if self.seeds == "only":
            chosen = seeds
        else:
            candidates = words if is_alike else words & ~seeds
            table = deletion_counts(np.arange(length + 1), self.ratio, keep=self.keep)
            numbers = tf.reduce_sum(tf.cast(candidates, tf.int32), axis=1)
            counts = tf.gather(tf.constant(table, tf.int32), numbers)
            uniforms = keyed_uniforms((self.seed, epoch), ids, length)
            chosen = random_choice(uniforms, candidates, counts)
            if self.seeds == "first":
                chosen |= seeds
        if starts is not None:
            chosen = whole_words(chosen, starts)
        return chosen & present

    def _rows(self, array: np.ndarray | None, ids: tf.Tensor) -> tf.Tensor | None:
        if array is None:
            return None
        return tf.gather(host_tensor(array), ids)

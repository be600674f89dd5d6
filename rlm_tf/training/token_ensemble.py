"""The mean of what a language model said of each token of a text, over epochs."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, cast

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes
from rlm_tf.replicas import own_part, sum_of_parts
from rlm_tf.training.epoch_log import EpochLog
from rlm_tf.training.epoch_means import EpochMeans, summed
from rlm_tf.training.examples import checked_examples

# Tokens that are merged at once.
_ROWS = 1024


class TokenTargets(NamedTuple):
    """What earlier epochs said of tokens.

    Attributes:
        words: Int32 `[B, k]`.
        probs: `[B, k]`, float32, their mean probabilities; 0 where there is none yet.
        counts: `[B]`, int32: the epochs in which a token was seen (`variant="authors"`:
            the first one twice).
    """

    words: tf.Tensor
    probs: tf.Tensor
    counts: tf.Tensor


class TokenEnsemble(EpochMeans):
    """`TemporalEnsemble` of the tokens of a text: the k largest of each mean are kept.

    Of a mean of probabilities over all words there would be no room. A word that falls
    out of the k largest comes back with what a later epoch says of it alone, so the
    means are lower bounds; with k as many as words they are exact. Tokens are known by
    their places in the text (`rlm_tf.data.PlacedBatches`). The epoch that is going on
    is kept apart until `end_epoch()`. In memory all are variables, which checkpoints
    hold: 16 k bytes a token. With a `path` they are files, as those of
    `TemporalEnsemble`, of which checkpoints hold the length.

    Args:
        num_tokens: N; places are below it.
        k: Words of a token.
        path: A folder; None: in memory.
        variant: `"thesis"`, or `"authors"`: the first epoch counts twice.

    Raises:
        ValueError: If a number is not positive, the variant unknown, or the folder has
            something else.
    """

    def __init__(
        self,
        num_tokens: int,
        k: int = 64,
        *,
        path: str | os.PathLike[str] | None = None,
        variant: str = "thesis",
    ) -> None:
        own = type(self).__name__
        check_integer(own, "num_tokens", num_tokens, 1)
        check_integer(own, "k", k, 1)
        value = [("words", np.int32, (k,)), ("probs", np.float32, (k,))]
        super().__init__("token_ensemble", num_tokens, value, path, variant)
        self.num_tokens = num_tokens
        self.k = k
        if path is None:
            shape = [num_tokens, k]
            self._words = tf.Variable(tf.zeros(shape, tf.int32), trainable=False)
            self._probs = tf.Variable(tf.zeros(shape), trainable=False)
            # No token is on two replicas.
            self._now_words = summed(shape, tf.int32)
            self._now_probs = summed(shape, tf.float32)

    def targets(self, places: Any) -> TokenTargets:
        """Returns what finished epochs said of tokens.

        Args:
            places: Int `[B]`, in [0, N).

        Raises:
            ValueError: If places are no vector of integers, or out of range (in a graph
                an InvalidArgumentError).
        """
        places = self._checked("targets", places)
        counts = tf.gather(self._counts, places)
        if self._log is None:
            words, probs = (tf.gather(x, places) for x in (self._words, self._probs))
            return TokenTargets(words, probs, counts)
        words, probs = tf.numpy_function(
            self._read, [places, self._place], [tf.int32, tf.float32], stateful=True
        )
        shape = [places.shape[0], self.k]
        return TokenTargets(
            tf.ensure_shape(words, shape), tf.ensure_shape(probs, shape), counts
        )

    def update(self, places: Any, probs: Any, counts: Any = None) -> None:
        """Adds predictions of the epoch that is going on, in which a token comes once.

        Args:
            places: Int `[B]`, in [0, N).
            probs: `[B, V]`; no gradient.
            counts: Bool `[B]`, where they count: not of padding. None: everywhere.

        Raises:
            ValueError: As `targets`, or if shapes do not fit.
        """
        name = f"{type(self).__name__}.update"
        places = self._checked("update", places)
        probs = tf.stop_gradient(tf.cast(probs, tf.float32))
        check_shapes(name, places=(places, "B"), probs=(probs, "B V"))
        top, words = tf.math.top_k(probs, min(self.k, probs.shape[1] or self.k))
        if counts is not None:
            kept = tf.where(tf.convert_to_tensor(counts))[:, 0]
            top, words, places = (tf.gather(x, kept) for x in (top, words, places))
        room = [[0, 0], [0, self.k - top.shape[1]]]
        words, top = tf.pad(words, room), tf.pad(top, room)
        now = [(self._seen, tf.ones_like(places, tf.int32))]
        if self._log is None:
            now += [(self._now_words, words), (self._now_probs, top)]
        else:
            written = tf.numpy_function(
                self._write, [places, words, top, self._place], tf.int64, stateful=True
            )
            self._length.assign_add(written)
        for variable, values in now:
            own_part(variable).scatter_update(tf.IndexedSlices(values, places))

    def end_epoch(self) -> None:
        """Adds the epoch to the means; between steps, outside of graphs."""
        seen = sum_of_parts(self._seen) > 0
        after, share = self._shares(seen)
        if self._log is None:
            self._end_in_memory(share)
        else:
            self._end_in_files(self._log, share)
        self._begin_epoch(after)

    # === Parts ===

    def _end_in_memory(self, share: np.ndarray) -> None:
        now = [sum_of_parts(each) for each in (self._now_words, self._now_probs)]
        words, probs = self._words.numpy(), self._probs.numpy()
        for start in range(0, self.num_tokens, _ROWS):
            part = slice(start, start + _ROWS)
            words[part], probs[part] = _merged(
                words[part], probs[part], now[0][part], now[1][part], share[part]
            )
        self._words.assign(words)
        self._probs.assign(probs)
        for variable in (self._now_words, self._now_probs):
            variable.assign(tf.zeros_like(variable))

    def _end_in_files(self, log: EpochLog, share: np.ndarray) -> None:
        def add(means: np.ndarray, epoch: np.ndarray, part: slice) -> None:
            own = share[part]
            for start in range(0, len(means), _ROWS):
                rows = slice(start, start + _ROWS)
                old, new = means[rows], epoch[rows]
                old["words"], old["probs"] = _merged(
                    old["words"], old["probs"], new["words"], new["probs"], own[rows]
                )

        self._end_log(log, _put, add)

    def _read(
        self, places: np.ndarray, place: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        found = cast(EpochLog, self._log).means_of(places, place)
        return found["words"], found["probs"]

    def _write(
        self, places: np.ndarray, words: np.ndarray, top: np.ndarray, place: np.ndarray
    ) -> np.int64:
        log = cast(EpochLog, self._log)
        values = np.empty(len(places), log.value)
        values["words"], values["probs"] = words, top
        return log.append(places, values, place)

    def _checked(self, function: str, places: Any) -> tf.Tensor:
        name = f"{type(self).__name__}.{function}"
        return checked_examples(name, places, self.num_tokens)


def _put(epoch: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    epoch[places] = values


def _merged(
    words: np.ndarray,
    probs: np.ndarray,
    now_words: np.ndarray,
    now_probs: np.ndarray,
    share: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the k largest of `(1 - share) probs + share now` of each row."""
    k = words.shape[1]
    old = (1 - share)[:, np.newaxis] * probs
    new = share[:, np.newaxis] * now_probs
    # Places that hold no word have the probability 0.
    same = words[:, :, np.newaxis] == now_words[:, np.newaxis]
    same &= (probs > 0)[:, :, np.newaxis] & (now_probs > 0)[:, np.newaxis]
    old = old + np.einsum("nij,nj->ni", same, new)
    new = np.where(same.any(axis=1), 0, new)
    both = np.concatenate([old, new], axis=1)
    order = np.argsort(-both, axis=1, kind="stable")[:, :k]
    found = np.concatenate([words, now_words], axis=1)
    return (
        np.take_along_axis(found, order, axis=1),
        np.take_along_axis(both, order, axis=1).astype(np.float32),
    )

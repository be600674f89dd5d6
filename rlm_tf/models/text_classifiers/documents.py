"""Documents of a procedure, and batches of some of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.data.labelled.document_batches import DocumentBatches, compact_tokens
from rlm_tf.host_tensors import host_array, host_tensor
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.layers.text.word_deletion import WordDeletion
from rlm_tf.training.resumable_batches import ResumableBatches

# Documents whose words are deleted at once.
_ROWS = 4096


class Documents(NamedTuple):
    """What a procedure is given.

    Attributes:
        tokens: uint16 or int32 `[N, T]`.
        labels: int `[N]`, -1: none.
        places: bool `[N, T]`, where seeds are; None: not known.
        starts: bool `[N, T]`, pieces that begin a word; None: all do.
        spared: Ids that are no words.
        weights: float `[N]`, of documents in losses; None: all alike.
        placed: The tokens as a tensor, which all trainings share.
    """

    tokens: np.ndarray
    labels: np.ndarray
    places: Any
    starts: Any
    spared: Collection[int]
    weights: Any = None
    placed: Any = None

    @classmethod
    def checked(
        cls,
        name: str,
        tokens: npt.ArrayLike,
        labels: npt.ArrayLike,
        *,
        places: npt.ArrayLike | None = None,
        starts: npt.ArrayLike | None = None,
        spared: Collection[int] = (),
        weights: npt.ArrayLike | None = None,
    ) -> Documents:
        """Returns documents; raises ValueError unless all belongs together."""
        given = {"places": places, "starts": starts}
        arrays = {
            argument: None if value is None else np.asarray(value, bool)
            for argument, value in given.items()
        }
        placed = _placed(tokens)
        rows, own = host_array(placed), np.asarray(labels)
        if rows.ndim != 2 or own.shape != rows.shape[:1]:
            raise ValueError(
                f"{name}: `tokens` must be [N, T] and `labels` [N], found "
                f"{list(rows.shape)} and {list(own.shape)}."
            )
        for argument, value in arrays.items():
            if value is not None and value.shape != rows.shape:
                raise ValueError(
                    f"{name}: `{argument}` must be {list(rows.shape)}, as the tokens, "
                    f"found {list(value.shape)}."
                )
        of = None if weights is None else np.asarray(weights, np.float32)
        if of is not None and not (of.shape == own.shape and (of >= 0).all()):
            raise ValueError(
                f"{name}: `weights` must be {list(own.shape)} numbers from 0 on, found "
                f"{list(of.shape)}."
            )
        if not (own >= 0).any():
            raise ValueError(f"{name}: no document has a label.")
        places, starts = arrays["places"], arrays["starts"]
        return cls(rows, own, places, starts, spared, of, placed)

    def with_tokens(self, tokens: npt.ArrayLike) -> Documents:
        """Returns the same with other tokens."""
        placed = _placed(tokens)
        return self._replace(tokens=host_array(placed), placed=placed)

    def has_words(self) -> np.ndarray:
        """Returns which documents have a word, bool `[N]`."""
        return rows_with_words(self.tokens, self.spared)

    def batches(
        self,
        rows: np.ndarray,
        labels: np.ndarray,
        batch_size: int,
        seed: int,
        deletion: Mapping[str, Any] | None,
        passes: int = 1,
    ) -> ResumableBatches:
        """Returns batches of some documents.

        Args:
            rows: int `[M]`, which.
            labels: int `[M]`, what is learnt of them.
            batch_size: Documents of a batch.
            seed: Of their order, and of deletion.
            deletion: Options of `WordDeletion`; None: nothing is deleted.
            passes: Over them, that are one epoch.
        """
        weights = None
        if self.weights is not None:
            # What is learnt of a document but its own label weighs as any other.
            weights = np.where(self.labels[rows] == labels, self.weights[rows], 1.0)
        own = DocumentBatches(
            self.placed, labels, batch_size, rows=rows, weights=weights, seed=seed
        )
        transform = None
        if deletion is not None:
            transform = self._deletion(rows, seed, deletion)
        return ResumableBatches(own, transform=transform, passes=passes)

    def corrupted(
        self, rows: np.ndarray, seed: int, deletion: Mapping[str, Any]
    ) -> np.ndarray:
        """Returns what is left of documents in the first epoch, int32 `[M, T]`."""
        transform = self._deletion(rows, seed, deletion)
        found = [
            transform.without(
                tf.constant(self.tokens[rows[first : first + _ROWS]], tf.int32),
                tf.range(first, min(first + _ROWS, len(rows))),
                0,
            )[0].numpy()
            for first in range(0, len(rows), _ROWS)
        ]
        return np.concatenate(found)

    def _deletion(
        self, rows: np.ndarray, seed: int, options: Mapping[str, Any]
    ) -> WordDeletion:
        given = {"seed": seed, "spared": self.spared, **options}
        # Where seeds are words like others, it does not matter where they are.
        places = None if given.get("seeds", "alike") == "alike" else self.places
        places, starts = (
            None if each is None else each[rows] for each in (places, self.starts)
        )
        return WordDeletion(places=places, starts=starts, **given)


def rows_with_words(tokens: np.ndarray, spared: Collection[int]) -> np.ndarray:
    """Returns which rows of token ids have a word, bool `[N]`.

    Args:
        tokens: int `[N, T]`.
        spared: Ids that are no words.
    """
    found = tokens != PADDING
    for token in spared:
        found &= tokens != token
    return found.any(axis=1)


def _placed(tokens: npt.ArrayLike) -> tf.Tensor:
    """Returns tokens as a tensor of the host, which they may be already."""
    return tokens if tf.is_tensor(tokens) else host_tensor(compact_tokens(tokens))

"""Texts, or pairs of texts, with a label each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rlm_tf.checks import check_integer


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Examples to learn from, or to be judged on.

    Attributes:
        texts: The texts.
        labels: int32 `[N]`, places in `names`; float32 `[N]` where labels are numbers.
        names: Of the classes; empty where labels are numbers.
        texts_b: The second texts of pairs; None: there are none.
    """

    texts: list[str]
    labels: np.ndarray
    names: tuple[str, ...] = ()
    texts_b: list[str] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def is_regression(self) -> bool:
        """Whether labels are numbers."""
        return not self.names

    def take(self, places: Sequence[int] | np.ndarray) -> LabelledTexts:
        """Returns the examples at some places."""
        second = self.texts_b
        return dataclasses.replace(
            self,
            texts=[self.texts[place] for place in places],
            labels=self.labels[np.asarray(places, np.int64)],
            texts_b=None if second is None else [second[place] for place in places],
        )

    def sample(self, number: int, seed: int) -> LabelledTexts:
        """Returns examples drawn without repetition, of each class its share.

        Args:
            number: How many.
            seed: Of the draw.

        Raises:
            ValueError: If there are fewer.
        """
        check_integer("LabelledTexts.sample", "number", number, 1)
        if number > len(self):
            raise ValueError(
                f"LabelledTexts.sample: `number` must be at most the {len(self)} "
                f"examples there are, found {number}."
            )
        return self.take(np.sort(self._mixed(seed)[:number]))

    def split(self, share: float, seed: int) -> tuple[LabelledTexts, LabelledTexts]:
        """Returns the others and a share held out, of each class its share.

        Raises:
            ValueError: If one of the two would be empty.
        """
        number = round(share * len(self))
        if not 0 < number < len(self):
            raise ValueError(
                f"LabelledTexts.split: {share:g} of {len(self)} examples leaves "
                "nothing for one of two parts."
            )
        order = self._mixed(seed)
        held, kept = np.sort(order[:number]), np.sort(order[number:])
        return self.take(kept), self.take(held)

    def _mixed(self, seed: int) -> np.ndarray:
        """Returns all places in an order any beginning of which has every class."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self))
        if self.is_regression:
            return order
        labels = self.labels[order]
        # An example of a class with n others counts as its (i + u) / n-th part.
        key = np.empty(len(self))
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            key[own] = (np.arange(len(own)) + rng.random()) / len(own)
        return order[np.argsort(key, kind="stable")]

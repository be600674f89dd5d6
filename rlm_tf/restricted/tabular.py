"""A restricted model that is a table: one distribution for each short context."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.restricted.restricted_model import RestrictedModel
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class TabularModel(RestrictedModel):
    """`P(outcome | short context)` for few short contexts, each with a number.

    Policies on restricted observations, word classes and other small tables are such
    models; `vocabulary_size` is the number of outcomes. The table is a weight that is
    not trained, so files of wrappers carry it.

    Args:
        num_contexts: Short contexts, C.
        num_outcomes: Outcomes, V.
    """

    context_length = 1

    def __init__(self, num_contexts: int, num_outcomes: int, **kwargs: Any):
        super().__init__(**kwargs)
        check_integer("TabularModel", "num_contexts", num_contexts, 1)
        check_integer("TabularModel", "num_outcomes", num_outcomes, 1)
        self.num_contexts = num_contexts
        self.num_outcomes = num_outcomes
        self.vocabulary_size = num_outcomes
        self.table = self.add_weight(
            shape=(num_contexts, num_outcomes),
            initializer="zeros",
            trainable=False,
            dtype="float32",
            name="log_probs",
        )
        self.table.assign(
            tf.fill([num_contexts, num_outcomes], -np.log(np.float32(num_outcomes)))
        )
        self.built = True

    @classmethod
    def from_probs(cls, probs: npt.ArrayLike) -> TabularModel:
        """Returns the model of a table of probabilities `[C, V]`.

        Raises:
            ValueError: If its rows are not distributions.
        """
        table = np.asarray(probs, np.float64)
        if table.ndim != 2 or table.min(initial=0) < 0 or not table.size:
            raise ValueError(
                "TabularModel.from_probs: `probs` must have axes [C V] and no negative "
                f"entry, found shape {table.shape}."
            )
        sums = table.sum(axis=1)
        if not np.allclose(sums, 1.0, atol=1e-6):
            worst = int(np.argmax(np.abs(sums - 1)))
            raise ValueError(
                f"TabularModel.from_probs: row {worst} of `probs` sums to "
                f"{sums[worst]:.6g}, expected 1."
            )
        model = cls(*table.shape)
        with np.errstate(divide="ignore"):
            model.table.assign(np.log(table))
        return model

    def log_probs(self, short_contexts: TensorLike) -> tf.Tensor:
        """Returns float32 `[N, V]` for context numbers `[N]`, see `RestrictedModel`."""
        contexts = self._context_matrix(short_contexts)[:, 0]
        return tf.gather(tf.convert_to_tensor(self.table), contexts)

    @property
    def _num_ids(self) -> int:
        return self.num_contexts

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(num_contexts=self.num_contexts, num_outcomes=self.num_outcomes)
        return config

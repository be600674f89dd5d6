"""What a language model says of tokens: its export must say the same."""

from __future__ import annotations

from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.generation.mixture import log_mixture
from rlm_tf.models.language.stateful_language_model import StatefulLanguageModel
from rlm_tf.numerics import at_least_single
from rlm_tf.restricted import RestrictedModel

# Logits that are in memory at once, and words whose sensitivity is looked at.
_LOGITS = 2**24
_WORDS = 10_000


class ModelAnswers:
    """The numbers of a model, computed by Keras and not by its export.

    Args:
        model: A Keras language model, or a restricted model.
        mixture: A restricted model and its weight, or None.
        prefix: The token before every text.
        temperature: Of the model.
    """

    def __init__(
        self,
        model: keras.Model | RestrictedModel,
        mixture: tuple[RestrictedModel, float] | None,
        prefix: int,
        temperature: float = 1.0,
    ) -> None:
        self._model = model
        self._mixture = mixture
        self._prefix = prefix
        self._temperature = temperature

    @property
    def is_exact(self) -> bool:
        """Whether products are not rounded to half precision."""
        return self._model.compute_dtype in ("float32", "float64")

    def predictions(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns log-probabilities `[N - 1]` of tokens and probabilities `[V]` after.

        Args:
            ids: Tokens `[N]`, of which the first is only read.
        """
        log_probs, first = [], 0
        targets = np.append(ids[1:], 0)
        for rows in self._log_probs(ids):
            block = tf.constant(targets[first : first + len(rows)])
            log_probs.append(tf.gather(rows, block, batch_dims=1).numpy())
            first += len(rows)
        return np.concatenate(log_probs)[:-1], tf.exp(rows[-1]).numpy()

    def sensitivity(self, ids: np.ndarray) -> np.ndarray:
        """Returns by how much the last bit of all weights changes answers, so far.

        Args:
            ids: Tokens `[N]`.

        Returns:
            float64 `[N]`, of log-probabilities after each token, never decreasing; of a
            large vocabulary some words are looked at. Tables have none.
        """
        if isinstance(self._model, RestrictedModel):
            return np.zeros(len(ids))

        def log_probs() -> np.ndarray:
            blocks = []
            for rows in self._log_probs(ids):
                step = -(-rows.shape[-1] // _WORDS)
                blocks.append(rows[:, ::step].numpy())
            return np.concatenate(blocks)

        before = log_probs()
        weights = self._model.weights
        kept = [weight.numpy() for weight in weights]
        try:
            for weight, value in zip(weights, kept, strict=True):
                # Not NumPy's own kind: bfloat16.
                if value.dtype.kind in "fV":
                    weight.assign((value * (1 + 2.0**-23)).astype(value.dtype))
            relative = relative_difference(log_probs(), before)
        finally:
            for weight, value in zip(weights, kept, strict=True):
                weight.assign(value)
        return np.maximum.accumulate(relative.max(axis=-1).astype(np.float64))

    def _log_probs(self, ids: np.ndarray) -> Iterator[tf.Tensor]:
        """Yields the log-probabilities `[b, V]` after each of the tokens `[N]`."""
        if isinstance(self._model, RestrictedModel):
            yield self._restricted(self._model, ids, 0, len(ids))
            return
        first = 0
        for logits in self._logits(ids):
            last = first + len(logits)
            if self._temperature != 1.0:
                logits = at_least_single(logits) / self._temperature
            if self._mixture is None:
                yield tf.nn.log_softmax(at_least_single(logits))
            else:
                restricted, mu = self._mixture
                log_p = self._restricted(restricted, ids, first, last)
                yield log_mixture(logits, log_p, mu)
            first = last

    def _restricted(
        self, model: RestrictedModel, ids: np.ndarray, first: int, last: int
    ) -> tf.Tensor:
        """Returns log-probabilities `[last - first, V]` after some of the tokens."""
        length = model.context_length
        read = np.concatenate([np.full(length, self._prefix), ids]).astype(np.int64)
        contexts = [read[i + 1 : i + 1 + length] for i in range(first, last)]
        return model.log_probs(np.reshape(contexts, [last - first, length]))

    def _logits(self, ids: np.ndarray) -> Iterator[tf.Tensor]:
        """Yields the logits `[b, V]` after each of the tokens `[N]`, block by block.

        A recurrent model's output layer is applied to few positions at a time: all
        logits of a large vocabulary take gigabytes.
        """
        tokens = tf.constant(ids[np.newaxis], tf.int32)
        if not isinstance(self._model, StatefulLanguageModel):
            yield self._model(tokens, training=False)[0]
            return
        features = self._model.features(tokens)
        size = int(self._model.output_logits(features[:, :1]).shape[-1])
        block = max(1, _LOGITS // size)
        for first in range(0, len(ids), block):
            yield self._model.output_logits(features[:, first : first + block])[0]


def relative_difference(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Returns relative differences; a word that must not come has none."""
    same = np.isneginf(found) & np.isneginf(expected)
    found, expected = np.where(same, 0.0, found), np.where(same, 0.0, expected)
    return np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)

"""What an exported model with a discriminator of pairs answers with, besides."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.models.bmi.pair_scorer import PairScorer
from rlm_tf.serving.language_model_service import LanguageModelService
from rlm_tf.untracked import Untracked

_STRINGS = tf.TensorSpec([None], tf.string)


class PairService(LanguageModelService):
    """A `LanguageModelService` with `score_pairs`.

    Args:
        model: The language model.
        vocabulary: The vocabulary that the model was trained with.
        pairs: What scores pairs of texts by this model.
        **options: Of `LanguageModelService`.
    """

    def __init__(
        self,
        model: keras.Model,
        vocabulary: Vocabulary,
        pairs: PairScorer,
        **options: Any,
    ) -> None:
        super().__init__(model, vocabulary, **options)
        self._pairs = Untracked(pairs)
        self._weights += [weight.value for weight in pairs.discriminator.weights]

    @tf.function(input_signature=[_STRINGS, _STRINGS], autograph=False)
    def score_pairs(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns how well each second text goes on from the first.

        A text is read as a sentence, from zero states: `<eos>` is added at its end
        unless it has one.

        Args:
            first: Strings `[N]`.
            second: Strings `[N]`.

        Returns:
            `scores`: float32 `[N]`, D of the discriminator: trained well, the nats by
                which the two are more probable together than apart;
            `log_probs`: float32 `[N]`, ln Q(second | first), nats, `<eos>` included, of
                the model alone.

        Raises:
            tf.errors.InvalidArgumentError: When run, if there are not as many first
                texts as second ones.
        """
        scorer = self._pairs.value
        x, y = self._sentences("first", first), self._sentences("second", second)
        same = tf.debugging.Assert(
            tf.equal(tf.shape(x)[0], tf.shape(y)[0]),
            ["score_pairs: first and second must be as many, found", tf.shape(y)[0]],
        )
        with tf.control_dependencies([same]):
            x = tf.identity(x)
        return {
            "scores": tf.cast(scorer.scores(x, y), tf.float32),
            "log_probs": tf.cast(scorer.log_probs(x, y), tf.float32),
        }

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        requests = super().requests()
        texts = requests["score"]["texts"]
        return {**requests, "score_pairs": {"first": texts, "second": texts}}

    def _sentences(self, name: str, texts: tf.Tensor) -> tf.Tensor:
        """Returns the tokens of texts `[N, L]`, padded with -1, their ends included."""
        ids = self._read("score_pairs", name, texts)
        before = tf.fill([ids.nrows(), 1], tf.constant(-1, ids.dtype))
        padded = tf.concat([before, ids.to_tensor(-1)], axis=1)
        last = tf.gather(padded, ids.row_lengths(), batch_dims=1)
        ends = tf.fill([ids.nrows(), 1], tf.constant(self._eos_id, ids.dtype))
        missing = tf.RaggedTensor.from_tensor(
            ends, lengths=tf.cast(last != self._eos_id, tf.int64)
        )
        whole = tf.concat([ids, missing], axis=1).to_tensor(-1)
        # Recurrence needs a step, also of no texts.
        return tf.pad(whole, [[0, 0], [0, 1]], constant_values=-1)

"""What an exported classifier answers with: strings in, names of classes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.models.encoders.sequence_classifier import SequenceClassifier
from rlm_tf.serving.encoders.encoder_service import EncoderService
from rlm_tf.untracked import Untracked

_STRINGS = tf.TensorSpec([None], tf.string)


class ClassifierService(EncoderService):
    """An `EncoderService` with `classify`, of texts or of pairs of them.

    Args:
        model: The classifier.
        vocabulary: See `EncoderService`.
        length: Likewise.
        labels: Names of the classes; none where it gives numbers.
        pairs: Whether it was trained on pairs: then `classify` takes `texts_b`, too.

    Raises:
        ValueError: If there is not one name for each class.
    """

    def __init__(
        self,
        model: SequenceClassifier,
        vocabulary: Vocabulary,
        length: int,
        labels: Sequence[str],
        pairs: bool = False,
    ) -> None:
        if len(labels) != (model.num_classes or 0):
            raise ValueError(
                f"`labels` must be one name for each of {model.num_classes or 0} "
                f"classes, found {len(labels)}."
            )
        super().__init__(model.encoder, vocabulary, length, model.weights)
        self._model = Untracked(model)
        self._pairs = pairs
        self._labels = tf.Variable([*labels] or [""], trainable=False, name="labels")

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def classify(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the class of each text.

        Args:
            texts: Strings `[N]`.

        Returns:
            `labels`: strings `[N]`, the most probable class;
            `probabilities`: float32 `[N, C]`, of all classes; of a model of numbers
                `values`, float32 `[N]`, in place of both;
            `cut`: bool `[N]`, texts that are longer than the window.
        """
        return self._answer("classify", texts, None)

    @tf.function(input_signature=[_STRINGS, _STRINGS], autograph=False)
    def classify_pairs(
        self, texts: tf.Tensor, texts_b: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the class of each pair of texts: `classify` of models of pairs.

        Args:
            texts: Strings `[N]`.
            texts_b: Strings `[N]`.

        Raises:
            tf.errors.InvalidArgumentError: When run, if there are not as many.
        """
        same = tf.debugging.Assert(
            tf.equal(tf.size(texts), tf.size(texts_b)),
            ["classify: texts and texts_b must be as many, found", tf.size(texts_b)],
        )
        with tf.control_dependencies([same]):
            texts = tf.identity(texts)
        return self._answer("classify", texts, texts_b)

    def _answer(
        self, function: str, texts: tf.Tensor, texts_b: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        rows = self._rows(function, texts, texts_b)
        model = self._model.value
        found = tf.cast(model((rows.tokens, rows.segments)), tf.float32)
        if model.is_regression:
            return {"values": found, "cut": rows.cut}
        return {
            "labels": tf.gather(self._labels, tf.argmax(found, axis=-1)),
            "probabilities": tf.nn.softmax(found),
            "cut": rows.cut,
        }

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        texts = tf.constant(["a text"])
        request = (
            {"texts": texts, "texts_b": texts} if self._pairs else {"texts": texts}
        )
        return {**super().requests(), "classify": request}

    def signatures(self) -> dict[str, Any]:
        classify = self.classify_pairs if self._pairs else self.classify
        return {"embed": self.embed, "classify": classify}

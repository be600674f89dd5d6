"""Writes classifiers of documents as SavedModels that answer strings."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_range
from rlm_tf.labelling.seed_rule import SeedRule
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.layers.text.seed_matcher import SeedMatcher
from rlm_tf.models.text_classifiers.text_classifier import TextClassifier
from rlm_tf.numerics import at_least_single
from rlm_tf.serving.arguments import checked_texts, cut_texts
from rlm_tf.serving.export_answers import relative_difference
from rlm_tf.serving.export_path import check_export_path
from rlm_tf.serving.saved_model import check_weights, write_saved_model
from rlm_tf.untracked import Untracked

_NAME = "export_text_classifier"
_STRINGS = tf.TensorSpec([None], tf.string)


class TextClassifierService(tf.Module):
    """What an exported classifier of documents answers with.

    Args:
        model: The classifier, with a reader and names of classes.
        temperature: What logits are divided by.
    """

    def __init__(self, model: TextClassifier, temperature: float = 1.0) -> None:
        super().__init__(name="text_classifier_service")
        assert model.reader is not None
        self._table = model.reader.table()
        self._spared = Untracked(model.reader.spared)
        self._model = Untracked(model)
        self._temperature = temperature
        self._labels = tf.Variable(
            [*model.class_names, ""], trainable=False, name="labels"
        )
        self._weights = [weight.value for weight in model.weights]

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def classify(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the class of each text.

        Args:
            texts: Strings `[N]`.

        Returns:
            `labels`: strings `[N]`, the most probable class; empty if its probability
            is below the model's threshold, or a text has no word;
            `probabilities`: float32 `[N, C]`, of all classes;
            `cut`: bool `[N]`, texts that are longer than the window, or than
            MAX_TEXT_BYTES.
        """
        texts, is_long = cut_texts("classify", "texts", texts)
        rows = self._table.rows(texts)
        model = self._model.value
        logits = at_least_single(model(rows.tokens, training=False))
        probs = tf.nn.softmax(tf.cast(logits, tf.float32) / self._temperature)
        said = rows.tokens != PADDING
        for own in self._spared.value:
            said &= rows.tokens != own
        sure = tf.reduce_max(probs, axis=1) >= model.threshold
        named = sure & tf.reduce_any(said, axis=1)
        best = tf.argmax(probs, axis=1, output_type=tf.int32)
        labels = tf.gather(self._labels, tf.where(named, best, model.num_classes))
        return {"labels": labels, "probabilities": probs, "cut": rows.cut | is_long}

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        """Returns small inputs of each signature, for a server to warm up with."""
        return {"classify": {"texts": tf.constant(["a text"])}}

    def signatures(self) -> dict[str, Any]:
        """Returns the functions for `tf.saved_model.save`, which traces them once."""
        return {name: getattr(self, name) for name in self.requests()}


class SeededClassifierService(TextClassifierService):
    """A `TextClassifierService` with `match`, what seed words say.

    Args:
        model: The classifier.
        rule: The rule; its ties are "abstain" or "first".
        temperature: What logits are divided by.
    """

    def __init__(
        self, model: TextClassifier, rule: SeedRule, temperature: float = 1.0
    ) -> None:
        super().__init__(model, temperature)
        self._matcher = SeedMatcher(rule)
        self._rule_labels = tf.Variable(
            [*rule.class_names, ""], trainable=False, name="rule_labels"
        )

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def match(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns what the rule of seed words says of each text.

        Args:
            texts: Strings `[N]` of at most MAX_TEXT_BYTES, as all of a text counts.

        Returns:
            `labels`: strings `[N]`, empty where it says nothing;
            `counts`: int32 `[N, C]`, occurrences of each class' seeds.
        """
        found = self._matcher.match(checked_texts("match", "texts", texts))
        none = tf.size(self._rule_labels) - 1
        places = tf.where(found.labels < 0, none, found.labels)
        return {
            "labels": tf.gather(self._rule_labels, places),
            "counts": found.counts,
        }

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        own = super().requests()
        return {**own, "match": own["classify"]}


def export_text_classifier(
    model: TextClassifier,
    path: str | os.PathLike[str],
    *,
    rule: SeedRule | None = None,
    temperature: float = 1.0,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a SavedModel with `classify`, from strings to names of classes.

    With a rule it also has `match`, what seed words say. Models of subwords need
    `import tensorflow_text` in the process that loads it, those of words nothing.

    Args:
        model: A `TextClassifier` with `reader` and `class_names`.
        path: Directory to be made; parents are made too.
        rule: Seed words; its ties are "abstain" or "first".
        temperature: What logits are divided by, see `evaluation.fit_temperature`.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: If there is something at `path` that may not be replaced.
        ValueError: If the model is another, or reads no texts, a weight is not finite,
            or the SavedModel's numbers are not the model's.
    """
    path = pathlib.Path(path)
    check_export_path(path, overwrite)
    check_range(_NAME, 1e-6, 1e6, temperature=temperature)
    if not isinstance(model, TextClassifier):
        raise ValueError(
            f"{_NAME}: `model` must be a TextClassifier, found {type(model).__name__}."
        )
    if model.reader is None or not model.class_names:
        raise ValueError(
            f"{_NAME}: the model must have a reader of texts and names of classes: "
            "TextClassifier(..., reader=TextReader(...), class_names=...)."
        )
    if not model.built:
        model.build()
    service = (
        TextClassifierService(model, temperature)
        if rule is None
        else SeededClassifierService(model, rule, temperature)
    )
    check_weights(_NAME, model.weights)

    def check(written: pathlib.Path) -> None:
        _check_numbers(written, model, temperature)

    return write_saved_model(
        service, service.signatures(), path, check, service.requests(), overwrite
    )


def _check_numbers(
    directory: pathlib.Path, model: TextClassifier, temperature: float
) -> None:
    """Raises ValueError unless the answers are those of Keras."""
    assert model.reader is not None
    texts = ["a text of some words, and others", "words", ""]
    rows = model.reader.rows(texts)
    logits = tf.cast(model(tf.constant(rows.tokens), training=False), tf.float32)
    wanted = tf.nn.softmax(logits / temperature).numpy()
    served = tf.saved_model.load(str(directory)).signatures["classify"]
    found = served(texts=tf.constant(texts))["probabilities"].numpy()
    tolerance = 1e-4 if model.compute_dtype in ("float32", "float64") else 0.05
    worst = float(np.max(relative_difference(found, wanted)))
    if not worst <= tolerance:
        raise ValueError(
            f"{_NAME}: the SavedModel's answers differ from the model's by up to "
            f"{worst:.3g} (relative), more than {tolerance:g}; nothing was written."
        )

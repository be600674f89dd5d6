"""What a model shows of a topic while it reads a sentence, and keeps to its end."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.models.language.interface import language_model_of

# Pairs of sentences that are read.
_MOST = 2000


def topics_found(
    model: keras.Model, text: np.ndarray, num_topics: int, sentence_length: int
) -> dict[str, float]:
    """Returns how many topics of sentences a linear model finds in features of them.

    Sentences are read behind the one before. Half of those that show a marker are
    learnt from, the others counted.

    Args:
        model: A language model, or BMI around one.
        text: Of `TopicSource`.
        num_topics: C.
        sentence_length: Words of a sentence, without its end.

    Returns:
        Shares of sentences: by `greatest`, of each feature over the words; by `last`,
        the features at the end of the sentence; and `guessed`, the commonest topic.
    """
    from sklearn.linear_model import LogisticRegression

    sentences = text.reshape(-1, sentence_length + 1)
    number = min(_MOST, len(sentences) // 2)
    pairs = sentences[: 2 * number].reshape(number, -1)
    second = pairs[:, sentence_length + 1 :]
    markers = np.where(second <= num_topics, second, 0).max(axis=1)
    pairs, markers = pairs[markers > 0], markers[markers > 0]
    rows = tf.constant(np.pad(pairs, [[0, 0], [1, 0]]), tf.int32)
    hidden = language_model_of(model).hidden_features(rows)
    joined = np.concatenate(hidden, axis=-1)[:, -(sentence_length + 1) :]
    half = len(markers) // 2
    common = np.bincount(markers[:half]).argmax()
    found = {"guessed": float(np.mean(markers[half:] == common))}
    for name, values in (("greatest", joined.max(axis=1)), ("last", joined[:, -1])):
        probe = LogisticRegression(max_iter=1000).fit(values[:half], markers[:half])
        found[name] = float(np.mean(probe.predict(values[half:]) == markers[half:]))
    return found

"""Sentences with a hidden topic, of which the mutual information is known."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_range, checked_tokens


class TopicSource:
    """Sentences of random words, some of which show the topic by one marker.

    The topic of the next sentence is the same with probability `stay`, else it is drawn
    from all. A sentence is `sentence_length` words drawn uniformly, one of which, at
    any place, is replaced by the topic's marker with probability `shown`, and `<eos>`.
    Nothing but markers tells of topics, so what sentences share is known exactly.

    Ids: 0 `<eos>`, 1 to `num_topics` the markers, then the words.

    Args:
        num_topics: C.
        num_words: W.
        sentence_length: n, words of a sentence, marker included, `<eos>` not.
        shown: Probability of a marker.
        stay: Probability that a topic stays without being drawn anew.

    Attributes:
        vocabulary_size: 1 + C + W.
        end_id: 0.

    Raises:
        ValueError: If a size is not positive or a probability not in [0, 1].
    """

    end_id = 0

    def __init__(
        self,
        num_topics: int,
        num_words: int,
        sentence_length: int,
        *,
        shown: float,
        stay: float,
    ) -> None:
        name = "TopicSource"
        check_integer(name, "num_topics", num_topics, 1)
        check_integer(name, "num_words", num_words, 1)
        check_integer(name, "sentence_length", sentence_length, 1)
        check_range(name, 0.0, 1.0, shown=shown, stay=stay)
        self.num_topics = num_topics
        self.num_words = num_words
        self.sentence_length = sentence_length
        self.shown = shown
        self.stay = stay
        self.vocabulary_size = 1 + num_topics + num_words

    def sample(self, num_sentences: int, seed: int) -> np.ndarray:
        """Returns int32 `[num_sentences * (sentence_length + 1)]`, a text.

        Raises:
            ValueError: If `num_sentences` is not positive or `seed` negative.
        """
        check_integer("TopicSource.sample", "num_sentences", num_sentences, 1)
        check_integer("TopicSource.sample", "seed", seed, 0)
        rng = np.random.default_rng(seed)
        # Where a topic is drawn, the last one drawn stays until the next is.
        redrawn = rng.uniform(size=num_sentences) >= self.stay
        redrawn[0] = True
        drawn = rng.integers(self.num_topics, size=num_sentences)
        last = np.maximum.accumulate(np.where(redrawn, np.arange(num_sentences), 0))
        topics = drawn[last]
        text = np.zeros((num_sentences, self.sentence_length + 1), np.int32)
        text[:, :-1] = (
            1
            + self.num_topics
            + rng.integers(self.num_words, size=(num_sentences, self.sentence_length))
        )
        places = rng.integers(self.sentence_length, size=num_sentences)
        marked = np.flatnonzero(rng.uniform(size=num_sentences) < self.shown)
        text[marked, places[marked]] = 1 + topics[marked]
        return text.reshape(-1)

    def information(self, distance: int = 1) -> float:
        """Returns the mutual information of two sentences in nats.

        They share what their topics share if both show them, and nothing otherwise.

        Args:
            distance: 1 for neighbours.

        Raises:
            ValueError: If `distance` is not positive.
        """
        check_integer("TopicSource.information", "distance", distance, 1)
        shared = math.log(self.num_topics) - self._topic_entropy(distance)
        return self.shown**2 * shared

    def entropy_rate(self) -> float:
        """Returns the nats a token that no model goes below, far into a text.

        The chain rule over topics that are shown, places of markers, and words; an
        optimal reader knows the topic as it was shown last, `d` sentences ago.
        """
        length, shown = self.sentence_length, self.shown
        total = (length - shown) * math.log(self.num_words)
        total += _entropy([shown / length] * length + [1 - shown])
        distance, not_since = 1, 1.0
        # Sentences without a marker since the last; the rest of the sum is below it.
        while shown > 0 and not_since > 1e-16:
            total += shown * not_since * shown * self._topic_entropy(distance)
            not_since *= 1 - shown
            distance += 1
        return total / (length + 1)

    def log_probs(self, tokens: npt.ArrayLike) -> np.ndarray:
        """Returns the log-probability of every token given all before it, exactly.

        The Bayes filter: the belief over topics changes where a marker is read, and
        from sentence to sentence. The text begins with a sentence.

        Args:
            tokens: int `[T]`, a text of this source or its beginning.

        Returns:
            float64 `[T]`, nats; minus infinity for what cannot be.

        Raises:
            ValueError: If ids are not in the vocabulary.
        """
        ids = checked_tokens("TopicSource.log_probs", tokens, self.vocabulary_size)
        length, topics = self.sentence_length, self.num_topics
        belief = np.full(topics, 1 / topics)
        seen = False
        result = np.empty(len(ids))
        for t, token in enumerate(ids.tolist()):
            place = t % (length + 1)
            if place == length:
                result[t] = 0.0 if token == self.end_id else -np.inf
                belief = self.stay * belief + (1 - self.stay) / topics
                seen = False
                continue
            hazard = 0.0 if seen else self._hazard(place)
            if token == self.end_id:
                result[t] = -np.inf
            elif token <= topics:
                result[t] = _log(hazard * belief[token - 1])
                belief, seen = np.eye(topics)[token - 1], True
            else:
                result[t] = _log((1 - hazard) / self.num_words)
        return result

    def _hazard(self, place: int) -> float:
        """Returns the probability of a marker here if none has been before."""
        share = self.shown / self.sentence_length
        left = 1 - share * place
        return share / left if left > 0 else 0.0

    def _topic_entropy(self, distance: int) -> float:
        """Returns the entropy of a topic given the one `distance` sentences before."""
        kept = self.stay**distance
        other = (1 - kept) / self.num_topics
        return _entropy([kept + other] + [other] * (self.num_topics - 1))


def _entropy(probs: list[float]) -> float:
    return -sum(p * math.log(p) for p in probs if p > 0)


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf

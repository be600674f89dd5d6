"""Sources of known information: oracles, counts of samples, the Bayes filter."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rlm_tf.data import MarkovSource, TopicSource
from tests.references.bmi_reference import ORACLE

_MARKOV = ORACLE["markov_source"]


# === Markov chains ===


def test_tokens_that_are_left_for_good_share_nothing():
    """A chain that leads into another one for good has the information of that."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        inner = rng.dirichlet(np.ones(3), size=3)
        outer = rng.dirichlet(np.ones(6), size=3)
        whole = np.block([[inner, np.zeros((3, 3))], [outer[:, :3], outer[:, 3:]]])
        source = MarkovSource(whole)
        expected = MarkovSource(inner).information(1)
        assert source.information(1) == pytest.approx(expected, abs=1e-9)
        assert np.all(source.stationary[3:] == 0)


def test_stationary_distribution_and_information_of_the_oracle():
    source = MarkovSource(_MARKOV["transitions"])
    np.testing.assert_allclose(source.stationary, _MARKOV["stationary"], atol=1e-12)
    for gap, expected in _MARKOV["information_by_gap"].items():
        assert source.information(int(gap)) == pytest.approx(expected, abs=1e-12)


def test_entropy_rate_and_information_add_up():
    """H(t_1) = H(t_1 | t_0) + I(t_0; t_1)."""
    source = MarkovSource(_MARKOV["transitions"])
    marginal = -np.sum(source.stationary * np.log(source.stationary))
    assert source.entropy_rate() + source.information(0) == pytest.approx(marginal)


def test_samples_have_the_probabilities_of_the_chain():
    source = MarkovSource(_MARKOV["transitions"])
    tokens = source.sample(40_000, seed=3)
    assert tokens.dtype == np.int32 and tokens.shape == (40_000,)
    counts = np.zeros((3, 3))
    np.add.at(counts, (tokens[:-1], tokens[1:]), 1)
    sizes = counts.sum(axis=1, keepdims=True)
    errors = np.sqrt(source.transitions * (1 - source.transitions) / sizes)
    assert np.all(np.abs(counts / sizes - source.transitions) < 4 * errors)
    np.testing.assert_array_equal(tokens, source.sample(40_000, seed=3))
    assert np.any(tokens != source.sample(40_000, seed=4))
    firsts = [source.sample(1, seed)[0] for seed in range(2000)]
    shares = np.bincount(firsts, minlength=3) / 2000
    errors = np.sqrt(source.stationary * (1 - source.stationary) / 2000)
    assert np.all(np.abs(shares - source.stationary) < 4 * errors)


def test_a_chain_that_is_certain():
    source = MarkovSource([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert source.information(7) == pytest.approx(math.log(3))
    assert source.entropy_rate() == 0.0
    tokens = source.sample(10, seed=0)
    np.testing.assert_array_equal((tokens[1:] - tokens[:-1]) % 3, 1)


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        ([[0.5, 0.5]], "must be a square matrix, found shape"),
        ([[0.5, 0.4], [0.5, 0.5]], "probabilities that sum to 1"),
        ([[1.5, -0.5], [0.5, 0.5]], "the least entry -0.5"),
        ([[1.0, 0.0], [0.0, 1.0]], "one stationary distribution"),
    ],
)
def test_mistakes_of_chains(transitions, message):
    with pytest.raises(ValueError, match=message):
        MarkovSource(transitions)


# === Topics ===


@pytest.mark.parametrize("case", ORACLE["topic_source"]["cases"], ids=str)
def test_information_of_the_oracle(case):
    source = TopicSource(
        case["num_topics"], 20, 7, shown=case["shown"], stay=case["stay"]
    )
    found = source.information(case["distance"])
    assert found == pytest.approx(case["information"], abs=1e-12)


def _all_texts(source, num_sentences):
    """All texts of so many sentences with their probabilities, by the definition."""
    words = range(1 + source.num_topics, source.vocabulary_size)
    length, topics = source.sentence_length, range(source.num_topics)
    sentences = []
    for topic in topics:
        found = {}
        for chosen in itertools.product(words, repeat=length):
            share = 1 / source.num_words**length
            plain = (*chosen, 0)
            found[plain] = found.get(plain, 0) + share * (1 - source.shown)
            for place in range(length):
                marked = (*chosen[:place], 1 + topic, *chosen[place + 1 :], 0)
                found[marked] = found.get(marked, 0) + share * source.shown / length
        sentences.append(found)
    texts = {}
    for path in itertools.product(topics, repeat=num_sentences):
        chance = 1 / source.num_topics
        for before, after in itertools.pairwise(path):
            drawn = (1 - source.stay) / source.num_topics
            chance *= drawn + (source.stay if before == after else 0)
        for parts in itertools.product(*(sentences[topic].items() for topic in path)):
            text = tuple(itertools.chain.from_iterable(part for part, _ in parts))
            probability = chance * math.prod(p for _, p in parts)
            texts[text] = texts.get(text, 0) + probability
    return texts


@pytest.mark.parametrize("shown", [0.7, 1.0])
def test_everything_about_topics_by_enumeration(shown):
    source = TopicSource(2, 2, 2, shown=shown, stay=0.6)
    texts = _all_texts(source, 3)
    assert sum(texts.values()) == pytest.approx(1.0)
    for text, probability in texts.items():
        found = math.exp(np.sum(source.log_probs(np.array(text))))
        assert found == pytest.approx(probability, rel=1e-9)
    size = source.sentence_length + 1
    for distance in (1, 2):
        joint = {}
        for text, probability in texts.items():
            pair = text[:size], text[distance * size : (distance + 1) * size]
            joint[pair] = joint.get(pair, 0) + probability
        first, second = {}, {}
        for (x, y), probability in joint.items():
            first[x] = first.get(x, 0) + probability
            second[y] = second.get(y, 0) + probability
        information = sum(
            p * math.log(p / first[x] / second[y])
            for (x, y), p in joint.items()
            if p > 0
        )
        assert source.information(distance) == pytest.approx(information, abs=1e-12)


def test_the_filter_approaches_the_entropy_rate():
    source = TopicSource(6, 20, 7, shown=0.95, stay=0.9)
    text = source.sample(4000, seed=1)
    sums = source.log_probs(text).reshape(-1, 8).sum(axis=1) / 8
    error = sums.std() / math.sqrt(len(sums))
    assert -sums.mean() == pytest.approx(source.entropy_rate(), abs=4 * error)
    # Who forgets topics between sentences takes as much more as they share.
    other = TopicSource(6, 20, 7, shown=0.95, stay=0.0)
    assert other.entropy_rate() - source.entropy_rate() > 0.1


def test_samples_of_topics():
    source = TopicSource(5, 11, 4, shown=0.8, stay=0.9)
    text = source.sample(5000, seed=2)
    assert text.dtype == np.int32 and len(text) == 5000 * 5
    sentences = text.reshape(-1, 5)
    assert np.all(sentences[:, -1] == source.end_id)
    assert text.max() == source.vocabulary_size - 1
    markers = (sentences >= 1) & (sentences <= 5)
    assert set(markers.sum(axis=1)) == {0, 1}
    assert markers.any(axis=1).mean() == pytest.approx(0.8, abs=0.03)
    places = markers.sum(axis=0) / markers.sum()
    np.testing.assert_allclose(places, [0.25, 0.25, 0.25, 0.25, 0], atol=0.04)
    np.testing.assert_array_equal(text, source.sample(5000, seed=2))
    # Neighbours that show their topics show the same one if it stayed or came again.
    topics = np.where(markers, sentences, 0).max(axis=1)
    both = (topics[1:] > 0) & (topics[:-1] > 0)
    same = (topics[1:] == topics[:-1])[both].mean()
    assert same == pytest.approx(0.9 + 0.1 / 5, abs=0.02)


def test_what_cannot_be_has_no_probability():
    source = TopicSource(2, 3, 2, shown=0.5, stay=0.5)
    assert np.isneginf(source.log_probs([3, 0])[1])
    assert np.isneginf(source.log_probs([1, 2])[1])
    assert np.isneginf(source.log_probs([3, 3, 3])[2])


def test_mistakes_of_topics():
    with pytest.raises(ValueError, match=r"`shown` must lie in \[0, 1\], found 1.5"):
        TopicSource(2, 3, 2, shown=1.5, stay=0.5)
    with pytest.raises(ValueError, match="`num_words` must be an integer >= 1"):
        TopicSource(2, 0, 2, shown=0.5, stay=0.5)

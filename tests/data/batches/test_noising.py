"""Noising: its probabilities, expected counts (Appendix B.1), draws and seeds."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Noising, contiguous_batches, load_corpus
from rlm_tf.data.batches.noising_statistics import (
    bigram_statistics,
    expected_counts,
)
from rlm_tf.restricted.ngrams.discounts import modified_discounts
from tests.references import noising_reference as reference

V = 6
SETTINGS = [
    {"kind": "bigram-kn", "discounting": "absolute"},
    {"kind": "bigram-kn", "discounting": "modified"},
    {"kind": "unigram"},
    {"kind": "blank", "blank_id": V - 1},
]
SIDES = ("inputs", "targets", "both")


@pytest.fixture
def tokens() -> np.ndarray:
    """A stream with skewed frequencies; no discount is missing or clipped.

    Word 4 is only the first, word 5 is never used.
    """
    rng = np.random.default_rng(1)
    stream = np.append(4, rng.choice(4, size=35, p=[0.5, 0.25, 0.15, 0.1]))
    discounts = modified_discounts(bigram_statistics(stream, V).types_by_count)
    assert (discounts > 0).all() and (discounts < [1, 2, 3]).all()
    assert len(set(discounts)) == 3
    return stream


@pytest.mark.parametrize("discounting", ["absolute", "modified"])
def test_gamma_and_q_of_bigram_kn(tokens: np.ndarray, discounting: str) -> None:
    noising = Noising(tokens, V, gamma0=0.6, discounting=discounting)
    for word in range(5):
        assert noising.gamma[word] == pytest.approx(
            reference.gamma(tokens.tolist(), word, 0.6, discounting), abs=1e-15
        )
        assert noising.q[word] == pytest.approx(
            reference.continuation(tokens.tolist(), word), abs=1e-15
        )
    assert noising.gamma[5] == 0.6 and noising.q[5] == 0
    assert noising.q.sum() == pytest.approx(1, abs=1e-15)


def test_authors_give_the_first_word_one_context(tokens: np.ndarray) -> None:
    paper = Noising(tokens, V)
    authors = Noising(tokens, V, variant="authors")
    types = len(reference.bigram_counts(tokens.tolist()))
    assert paper.q[4] == 0 and authors.q[5] == 0
    assert authors.q[4] == pytest.approx(1 / (types + 1), abs=1e-15)
    np.testing.assert_allclose(authors.q[:4], paper.q[:4] * types / (types + 1))


def test_unigram_and_blank(tokens: np.ndarray) -> None:
    unigram = Noising(tokens, V, kind="unigram", gamma0=0.3)
    np.testing.assert_allclose(unigram.q, np.bincount(tokens, minlength=V) / 36)
    np.testing.assert_array_equal(unigram.gamma, np.full(V, 0.3))
    blank = Noising(tokens, V, kind="blank", blank_id=5)
    np.testing.assert_array_equal(blank.q, np.eye(V)[5])
    assert (unigram.sides, blank.sides, Noising(tokens, V).sides) == (
        "inputs",
        "inputs",
        "both",
    )


def dense_counts(pairs: np.ndarray) -> np.ndarray:
    return np.bincount(pairs[:, 0] * V + pairs[:, 1], minlength=V * V).reshape(V, V)


@pytest.mark.parametrize("sides", SIDES)
def test_expected_counts_follow_every_occurrence(rng, sides: str) -> None:
    counts = rng.integers(0, 5, (V, V))
    gamma, q = rng.random(V), rng.dirichlet(np.ones(V))
    expected = reference.expected_counts(
        {(x, y): counts[x, y] for x in range(V) for y in range(V)},
        gamma.tolist(),
        q.tolist(),
        sides,
    )
    found = expected_counts(counts, gamma, q, sides)
    for (x, y), value in expected.items():
        assert found[x, y] == pytest.approx(value, abs=1e-12)
    assert found.sum() == pytest.approx(counts.sum())


def test_unigram_noise_on_inputs_interpolates_with_the_unigram(rng) -> None:
    """Case (a) with constant gamma and q = c(.)/n of the contexts: simple smoothing."""
    counts = rng.integers(1, 9, (V, V))
    contexts = counts.sum(1)
    found = expected_counts(counts, np.full(V, 0.3), contexts / counts.sum(), "inputs")
    conditional = found / found.sum(1, keepdims=True)
    expected = 0.7 * counts / contexts[:, None] + 0.3 * counts.sum(0) / counts.sum()
    np.testing.assert_allclose(conditional, expected)


def test_target_noise_with_weaker_mass_is_equation_19(rng) -> None:
    """(19): gamma = lambda nu gives (1-lambda) c + lambda [(1-nu) c + nu q c(x)]."""
    counts = rng.integers(1, 9, (V, V))
    nu, q, strength = rng.random(V), rng.dirichlet(np.ones(V)), 0.2
    smoothed = (1 - nu)[:, None] * counts + np.outer(nu * counts.sum(1), q)
    np.testing.assert_allclose(
        expected_counts(counts, strength * nu, q, "targets"),
        (1 - strength) * counts + strength * smoothed,
    )


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("options", SETTINGS)
def test_drawn_counts_are_the_expected_ones(tokens, options, sides: str) -> None:
    """Runs the transform on many copies; every cell within 5 standard errors.

    A position that is (x, y) becomes (a, b) with a probability p that
    `expected_counts` of that single position gives; cells sum independent events, so
    their variance is the sum of p (1 - p).
    """
    copies = 300
    noising = Noising(tokens, V, gamma0=0.9, sides=sides, seed=3, **options)
    pairs = np.stack([tokens[:-1], tokens[1:]], axis=1).astype(np.int32)
    inputs = tf.constant(np.tile(pairs[:, 0], (copies, 1)))
    targets = tf.constant(np.tile(pairs[:, 1], (copies, 1)))
    start = tf.zeros([copies], tf.int32)
    total = np.zeros((V, V))
    for step in range(2):
        (x, _), y, _ = noising(
            ((inputs, start), targets, tf.ones(inputs.shape)), 0, step
        )
        total += dense_counts(np.stack([np.ravel(x), np.ravel(y)], axis=1))
    single = [
        expected_counts(dense_counts(pair[None]), noising.gamma, noising.q, sides)
        for pair in pairs
    ]
    expected = 2 * copies * np.sum(single, axis=0)
    closed_form = expected_counts(dense_counts(pairs), noising.gamma, noising.q, sides)
    np.testing.assert_allclose(expected, 2 * copies * closed_form, atol=1e-9)
    deviation = np.sqrt(2 * copies * np.sum([p * (1 - p) for p in single], axis=0))
    assert (np.abs(total - expected) <= 5 * deviation + 1e-9).all()
    assert np.abs(total - 2 * copies * dense_counts(pairs)).sum() > 10 * deviation.max()


def element(rng, batch_size: int = 4, window: int = 50):
    inputs = rng.integers(0, 4, (batch_size, window)).astype(np.int32)
    targets = rng.integers(0, 4, (batch_size, window)).astype(np.int32)
    weights = (rng.random((batch_size, window)) < 0.5).astype(np.float32)
    start = np.arange(batch_size, dtype=np.int32) % 2
    return tf.nest.map_structure(tf.constant, ((inputs, start), targets, weights))


def test_sides_padding_and_start_are_respected(rng, tokens) -> None:
    (inputs, start), targets, weights = element(rng)
    for sides in SIDES:
        noising = Noising(tokens, V, kind="blank", blank_id=5, gamma0=1.0, sides=sides)
        (x, s), y, w = noising(((inputs, start), targets, weights), 0, 0)
        real = weights == 1
        np.testing.assert_array_equal(
            x, np.where(real & (sides != "targets"), 5, inputs)
        )
        np.testing.assert_array_equal(
            y, np.where(real & (sides != "inputs"), 5, targets)
        )
        np.testing.assert_array_equal(s, start)
        np.testing.assert_array_equal(w, weights)
        assert x.dtype == y.dtype == tf.int32


def test_one_event_decides_both_and_draws_are_independent(rng) -> None:
    stream = rng.integers(0, 1000, 5000)
    noising = Noising(stream, 1001, kind="unigram", gamma0=0.5, sides="both")
    inputs = tf.fill([50, 100], 1000)
    (x, _), y, _ = noising(((inputs, tf.zeros([50])), inputs, tf.ones([50, 100])), 0, 0)
    np.testing.assert_array_equal(x == 1000, y == 1000)
    changed = np.asarray(x != 1000)
    same = (np.asarray(x) == np.asarray(y))[changed].mean()
    chance = (noising.q**2).sum()
    assert same <= chance + 5 * np.sqrt(chance / changed.sum())


def test_no_noise_leaves_everything(rng, tokens) -> None:
    original = element(rng)
    noised = Noising(tokens, V, gamma0=0.0)(original, 0, 0)
    for a, b in zip(tf.nest.flatten(noised), tf.nest.flatten(original), strict=True):
        np.testing.assert_array_equal(a, b)


def test_draws_depend_on_seed_epoch_and_step_only(rng, tokens) -> None:
    stream = rng.integers(0, 4, 200)
    batches = contiguous_batches(stream, 4, 10, prefix=0)

    def inputs(dataset: tf.data.Dataset) -> list[bytes]:
        return [e[0][0].numpy().tobytes() for e in dataset]

    def noising(seed: int) -> Noising:
        return Noising(tokens, V, kind="unigram", gamma0=0.9, seed=seed)

    epoch_2 = inputs(batches.dataset(transform=noising(1), epoch=2))
    assert inputs(batches.dataset(3, transform=noising(1), epoch=2)) == epoch_2[3:]
    stream_of_epochs = batches.dataset(13, repeat=True, transform=noising(1))
    assert inputs(stream_of_epochs.take(2)) == epoch_2[3:]
    others = [
        inputs(batches.dataset(transform=noising(1), epoch=3)),
        inputs(batches.dataset(transform=noising(2), epoch=2)),
        inputs(batches.dataset()),
    ]
    assert all(a != b for other in others for a, b in zip(epoch_2, other, strict=True))
    # Equal content in two steps is noised differently.
    block = contiguous_batches(np.zeros(80, int), 4, 10, prefix=0)
    assert len(set(inputs(block.dataset(transform=noising(1))))) == 2


def test_config_makes_an_equal_object(tokens) -> None:
    noising = Noising(
        tokens,
        V,
        kind="blank",
        gamma0=0.4,
        discounting="modified",
        sides="both",
        blank_id=5,
        variant="authors",
        seed=7,
    )
    again = Noising(tokens, V, **noising.get_config())
    assert again.get_config() == noising.get_config()
    np.testing.assert_array_equal(again.gamma, noising.gamma)
    np.testing.assert_array_equal(again.q, noising.q)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "trigram"}, "kind must be one of blank, unigram, bigram-kn"),
        ({"discounting": "good"}, "discounting must be one of"),
        ({"sides": "left"}, "sides must be one of"),
        ({"variant": "ours"}, "variant must be one of"),
        ({"gamma0": 1.5}, r"gamma0 must be in \[0, 1\], found 1.5"),
        ({"kind": "blank"}, "blank_id"),
        ({"blank_id": 1}, "blank_id"),
        ({"kind": "blank", "blank_id": 6}, r"blank_id must be in \[0, 6\), found 6"),
        ({"tokens": np.array([1])}, "at least two ids, found 1"),
        ({"tokens": np.array([1, 9])}, r"ids in \[0, 6\), found 1..9"),
        ({"tokens": np.array([1.0, 1.9])}, "integer ids, found dtype float64"),
    ],
)
def test_mistakes_in_arguments(tokens, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Noising(**{"tokens": tokens, "vocabulary_size": V} | options)


def test_penn_treebank(data_dir) -> None:
    """The strength of noise is what the discounts of this corpus make it."""
    corpus = load_corpus("ptb", data_dir)
    absolute = Noising(corpus.train, 10_000)
    modified = Noising(corpus.train, 10_000, discounting="modified")
    types = np.unique(corpus.train[:-1] * 10_000 + corpus.train[1:]).size
    # sum_x c(x) gamma(x) = gamma0 N1+(. .)
    mean = absolute.gamma[corpus.train[:-1]].sum() / types
    assert mean == pytest.approx(0.2, rel=1e-9)
    assert (modified.gamma <= 0.2).all()
    assert (
        0.6
        < modified.gamma[corpus.train].mean() / absolute.gamma[corpus.train].mean()
        < 1
    )

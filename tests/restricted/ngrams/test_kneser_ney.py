"""Tests of the fitted n-gram models against exact fractions."""

from __future__ import annotations

import contextlib
import itertools
from fractions import Fraction

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm_tf.restricted import KneserNey
from rlm_tf.restricted.ngrams.discounts import (
    counts_of_counts,
    modified_discounts,
    single_discount,
)
from tests.references import kneser_ney_reference as reference

LINES = "a b c|a b d|a b c|a b e|c a b|d c a|b c e|e a d|c a b|d e|b d a|e c a"
WORDS = ["<eos>", "a", "b", "c", "d", "e"]
TOKENS = [WORDS.index(w) for line in LINES.split("|") for w in [*line.split(), "<eos>"]]
STREAMS = st.integers(1, 4).flatmap(
    lambda size: st.tuples(
        st.just(size), st.lists(st.integers(0, size - 1), min_size=4, max_size=24)
    )
)


def _all_contexts(size: int, length: int) -> np.ndarray:
    contexts = list(itertools.product(range(size), repeat=length))
    return np.array(contexts, np.int64).reshape(len(contexts), length)


class TestToyCorpus:
    """The numbers of a hand-checked corpus, each an exact fraction."""

    model = KneserNey().fit(TOKENS, len(WORDS))

    def test_parameters(self):
        np.testing.assert_allclose(
            self.model.discounts, [[1 / 3, 3 / 2, 8 / 3]], rtol=1e-15
        )
        np.testing.assert_allclose(
            self.model.continuation_probs,
            [5 / 22, 2 / 11, 1 / 11, 2 / 11, 3 / 22, 2 / 11],
            rtol=1e-15,
        )
        np.testing.assert_allclose(
            self.model.missing_mass(np.arange(6)),
            [26 / 33, 17 / 30, 3 / 4, 9 / 14, 1 / 2, 2 / 3],
            rtol=1e-6,
        )

    @pytest.mark.parametrize(
        ("context", "word", "exact"),
        [
            ("a", "b", Fraction(127, 330)),
            ("b", "c", Fraction(47, 264)),
            ("b", "d", Fraction(29, 176)),
            ("c", "<eos>", Fraction(67, 308)),
            ("a", "e", Fraction(17, 165)),
            ("<eos>", "a", Fraction(21, 121)),
            ("e", "b", Fraction(2, 33)),
        ],
    )
    def test_probabilities(self, context, word, exact):
        pair = [WORDS.index(context), WORDS.index(word)]
        row = self.model.probs_numpy(pair[:1])[0]
        assert row[pair[1]] == pytest.approx(float(exact), rel=1e-15)
        assert self.model.score(pair) == pytest.approx(np.log(float(exact)), rel=1e-15)
        in_graph = float(self.model.probs(pair[:1])[0, pair[1]])
        assert in_graph == pytest.approx(float(exact), rel=1e-6)

    def test_perplexity_of_its_own_text(self):
        score = self.model.score(TOKENS)
        assert len(score) == len(TOKENS) - 1
        assert np.exp(-score.mean()) == pytest.approx(4.6307729717234, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("smoothing", ["modified", "absolute"])
@settings(max_examples=12, deadline=None)
@given(stream=STREAMS)
@example(stream=(1, [0, 0, 0, 0]))  # One word: no other can follow.
@example(stream=(3, [2, 0, 1, 0, 1, 0]))  # Word 2 only opens the stream.
@example(stream=(4, [0, 1, 2, 3]))  # Every n-gram once.
@example(stream=(2, [0, 1, 0, 1, 0, 1, 0, 1]))  # No bigram once.
@example(stream=(2, [0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0]))
def test_equals_the_definition(order, smoothing, stream):
    size, tokens = stream
    contexts = _all_contexts(size, order - 1)
    expected = [
        [
            float(reference.kneser_ney(tokens, tuple(u), w, size, smoothing))
            for w in range(size)
        ]
        for u in contexts.tolist()
    ]
    model = KneserNey(order, smoothing).fit(tokens, size)
    np.testing.assert_allclose(model.probs_numpy(contexts), expected, atol=1e-13)
    np.testing.assert_allclose(model.probs(contexts), expected, atol=1e-6)
    np.testing.assert_allclose(np.exp(model.log_probs(contexts)), expected, atol=1e-6)
    np.testing.assert_allclose(model.probs_numpy(contexts).sum(1), 1, atol=1e-13)
    pairs = contexts[: 3 * size], np.arange(3 * size) % size
    for context, word in zip(*pairs, strict=False):
        row = expected[contexts.tolist().index(context.tolist())]
        score = model.score([*context.tolist(), int(word)])
        assert np.exp(score[0]) == pytest.approx(row[word], abs=1e-13)


def test_order_six_equals_the_definition():
    tokens = [0, 1, 2, 0, 1, 0, 1, 2, 1, 2, 2, 0, 1, 2, 0, 1, 0]
    model = KneserNey(6).fit(tokens, 3)
    scores = np.exp(model.score(tokens))
    for place, score in enumerate(scores):
        context, word = tuple(tokens[place : place + 5]), tokens[place + 5]
        expected = reference.kneser_ney(tokens, context, word, 3)
        assert score == pytest.approx(float(expected), rel=1e-12)


@settings(max_examples=10, deadline=None)
@given(stream=STREAMS, order=st.integers(1, 4))
def test_simpler_smoothings_equal_the_definition(stream, order):
    size, tokens = stream
    contexts = _all_contexts(size, order - 1)
    likelihood = KneserNey(order, "maximum_likelihood").fit(tokens, size)
    added = KneserNey(order, "add_k", add_k=0.5).fit(tokens, size)
    half = Fraction(1, 2)
    exact_likelihood, exact_added = [], []
    for context in map(tuple, contexts.tolist()):
        for word in range(size):
            arguments = (tokens, context, word, size)
            exact_likelihood.append(float(reference.maximum_likelihood(*arguments)))
            exact_added.append(float(reference.add_k(*arguments, half)))
    for model, exact in ((likelihood, exact_likelihood), (added, exact_added)):
        expected = np.reshape(exact, [-1, size])
        np.testing.assert_allclose(model.probs_numpy(contexts), expected, atol=1e-13)
        np.testing.assert_allclose(model.probs(contexts), expected, atol=1e-6)


class TestDiscounts:
    def test_formulas(self):
        counts = counts_of_counts(np.repeat([1, 2, 3, 4, 6], [8, 8, 4, 1, 1]))
        np.testing.assert_allclose(modified_discounts(counts), [1 / 3, 3 / 2, 8 / 3])
        np.testing.assert_allclose(single_discount(counts), [1 / 3] * 3)

    @pytest.mark.parametrize(
        ("per_count", "expected"),
        [
            ([0, 5, 5, 5], [0, 0, 0]),  # Without singletons Y is 0.
            ([6, 0, 2, 1], [1, 1, 1]),  # N2 = 0: D2 undefined, D3 = 3 - 4/2.
            ([2, 2, 0, 9], [1 / 3, 1 / 3, 1 / 3]),
            ([2, 1, 9, 1], [1 / 2, 1 / 2, 3 - 2 / 9]),  # D2 = 2 - 13.5 < 0.
        ],
    )
    def test_degenerate_counts(self, per_count, expected):
        np.testing.assert_allclose(modified_discounts(per_count), expected)

    def test_without_singletons_nothing_is_taken_away(self, rng):
        """A text said three times: its words keep their probability."""
        tokens = np.tile(rng.integers(30, size=100), 3)
        modified, absolute, likelihood = (
            KneserNey(2, smoothing).fit(tokens, 30)
            for smoothing in ("modified", "absolute", "maximum_likelihood")
        )
        assert modified.discounts == absolute.discounts == [[0.0, 0.0, 0.0]]
        expected = likelihood.score(tokens)
        assert (expected > np.log(1e-2)).all()
        np.testing.assert_allclose(modified.score(tokens), expected, rtol=1e-9)


class TestRows:
    def test_exact_zeros(self):
        model = KneserNey(2).fit([2, 0, 1, 0, 1, 0], 4)
        assert (model.probs([0, 1, 2, 3]).numpy()[:, 2:] == 0).all()
        assert np.isneginf(model.log_probs([0, 1, 2, 3]).numpy()[:, 2:]).all()
        assert np.isneginf(model.score([0, 3])).all()

    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_floor_mixes_with_the_uniform_distribution(self, order):
        plain = KneserNey(order).fit(TOKENS, 8)
        mixed = KneserNey(order, floor=0.25).fit(TOKENS, 8)
        contexts = np.array(_all_contexts(8, order - 1))
        expected = 0.75 * plain.probs_numpy(contexts) + 0.25 / 8
        np.testing.assert_allclose(mixed.probs_numpy(contexts), expected, rtol=1e-14)
        np.testing.assert_allclose(mixed.probs(contexts), expected, rtol=1e-5)
        np.testing.assert_allclose(
            mixed.log_probs(contexts), np.log(expected), rtol=1e-5, atol=1e-6
        )
        tokens = [1, 7, 7, 2]
        np.testing.assert_allclose(
            np.exp(mixed.score(tokens)),
            0.75 * np.exp(plain.score(tokens)) + 0.25 / 8,
            rtol=1e-13,
        )

    def test_a_copy_has_another_floor(self):
        plain = KneserNey(3).fit(TOKENS, 8)
        copy, mixed = plain.with_floor(0.25), KneserNey(3, floor=0.25).fit(TOKENS, 8)
        contexts = np.array(_all_contexts(8, 2))
        np.testing.assert_array_equal(copy.probs(contexts), mixed.probs(contexts))
        np.testing.assert_array_equal(copy.score(TOKENS), mixed.score(TOKENS))
        assert copy.floor == 0.25 and copy.discounts == plain.discounts
        assert plain.floor == 0.0
        # Large tables are in memory once, also where they are written to a file.
        for model in (plain, copy):
            pair = (each._own_tables().levels for each in (model, copy))
            for own, same in zip(*pair, strict=True):
                for name, array in vars(own).items():
                    assert np.shares_memory(array, getattr(same, name)), name
        # Who asks for tables may write to them.
        plain.tables().levels[0].extra[:] = 0.0
        assert plain.tables().levels[0].extra.any()
        assert [w.shape for w in copy.weights] == [w.shape for w in mixed.weights]
        with pytest.raises(ValueError, match=r"`floor` must be in \[0, 1\], found 2"):
            plain.with_floor(2.0)
        with pytest.raises(ValueError, match="has no tables yet"):
            KneserNey(3).with_floor(0.1)

    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_repeated_contexts_of_any_batch_size(self, order):
        model = KneserNey(order).fit(TOKENS, 6)
        contexts = np.random.default_rng(0).integers(0, 6, [50, order - 1])
        compiled = tf.function(model.probs, autograph=False)
        for count in (0, 1, 50):
            rows = compiled(tf.constant(contexts[:count]))
            assert rows.shape == (count, 6)
            expected = model.probs_numpy(contexts[:count])
            np.testing.assert_allclose(rows, expected, atol=1e-6)

    def test_unknown_shapes_in_graphs(self):
        model = KneserNey(3).fit(TOKENS, 6)

        @tf.function(input_signature=[tf.TensorSpec(None, tf.int32)])
        def rows(contexts):
            return model.probs(tf.reshape(contexts, [-1, 2]))

        np.testing.assert_allclose(
            rows([[1, 2], [0, 0]]), model.probs([[1, 2], [0, 0]])
        )

    @pytest.mark.parametrize("order", [2, 3])
    def test_ids_out_of_range_are_unseen_words_in_graphs(self, order):
        model = KneserNey(order).fit(TOKENS, 6)
        wrong = np.array([-1, 6, 7, -6, 2**31 - 1])
        contexts = np.stack([wrong] + [np.full(5, 3)] * (order - 2), axis=1)
        rows = tf.function(model.probs)(tf.constant(contexts))
        lower = KneserNey(order).fit(TOKENS, 7).probs_numpy([[6, 3][: order - 1]])
        np.testing.assert_allclose(rows, np.tile(lower[:, :6], (5, 1)), atol=1e-6)

    @pytest.mark.parametrize("order", [2, 3])
    @pytest.mark.parametrize("inside", [True, False])
    def test_two_replicas(self, order, inside, two_replicas):
        with two_replicas.scope() if inside else contextlib.nullcontext():
            model = KneserNey(order).fit(TOKENS, 6)
        contexts = np.random.default_rng(0).integers(0, 6, [8, order - 1])
        data = tf.data.Dataset.from_tensor_slices(contexts).batch(8)

        @tf.function
        def step(batch):
            return two_replicas.run(model.probs, (batch,))

        (batch,) = two_replicas.experimental_distribute_dataset(data)
        rows = tf.concat(two_replicas.experimental_local_results(step(batch)), 0)
        np.testing.assert_allclose(rows, model.probs_numpy(contexts), atol=1e-6)

    def test_nothing_is_differentiated(self):
        model = KneserNey(2).fit(TOKENS, 6)
        assert not model.trainable_weights
        weights = [w.value for w in model.non_trainable_weights]
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = tf.reduce_sum(model.probs([1, 2]))
        assert tape.gradient(loss, weights) == [None] * len(weights)

    def test_calling_the_layer(self):
        model = KneserNey(2).fit(TOKENS, 6)
        np.testing.assert_array_equal(model(tf.constant([1])), model.log_probs([1]))


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"order": 0}, "`order` must be 1 to 6, found 0"),
            ({"order": 7}, "`order` must be 1 to 6, found 7"),
            ({"smoothing": "best"}, "`smoothing` must be one of modified.*'best'"),
            ({"floor": 1.5}, "`floor` must be in"),
            ({"add_k": 0.0}, "`add_k` must be positive"),
        ],
    )
    def test_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            KneserNey(**arguments)

    @pytest.mark.parametrize(
        ("tokens", "size", "message"),
        [
            ([0, 1, 2], 2, r"ids in \[0, 2\), found 0..2"),
            ([0, -1], 2, "found -1..0"),
            ([0], 2, "needs at least 2 tokens, found 1"),
            ([], 2, "needs at least 2 tokens, found 0"),
            ([[0, 1]], 2, r"must be a vector, found shape \[1, 2\]"),
            ([0.0, 1.0], 2, "integer ids, found dtype float64"),
            ([0, 1], 0, "`vocabulary_size` must be an integer >= 1"),
        ],
    )
    def test_streams(self, tokens, size, message):
        with pytest.raises(ValueError, match=message):
            KneserNey(2).fit(np.array(tokens), size)

    @pytest.mark.parametrize(
        ("contexts", "message"),
        [
            ([1, 2], r"must have shape \[N, 2\], found \(2,\)"),
            ([[1, 2, 3]], r"must have shape \[N, 2\], found \(1, 3\)"),
            ([[1.0, 2.0]], "must be integer ids, found dtype float32"),
            ([[1, 6]], r"must be ids in \[0, 6\), found 1..6"),
        ],
    )
    def test_contexts(self, contexts, message):
        model = KneserNey(3).fit(TOKENS, 6)
        with pytest.raises(ValueError, match=message):
            model.log_probs(contexts)

    def test_use_before_fit_and_second_fit(self):
        model = KneserNey()
        for use in (model.log_probs, model.probs, model.score, model.missing_mass):
            with pytest.raises(ValueError, match="no tables yet"):
                use([1])
        with pytest.raises(ValueError, match="no tables yet"):
            _ = model.continuation_probs
        model.fit(TOKENS, 6)
        with pytest.raises(ValueError, match="already has tables"):
            model.fit(TOKENS, 6)

"""Noising, Eq. (16), position by position, inside the training step."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.layers import LSTMCell
from rlm_tf.models import InBatchContexts, OwnContexts, RegularizedLanguageModel
from rlm_tf.restricted import KneserNey, TabularModel
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference
from tests.replica_steps import assert_two_replicas_equal_one

pytestmark = pytest.mark.eager


def _naive(model, restricted, element):
    """Mean of the cross-entropy of P_hat and Q over positions with whole contexts."""
    (tokens, _), _, weights = element
    tokens, length = tokens.numpy(), restricted.context_length
    probs = reference.softmax(model(tokens).numpy().astype(np.float64))
    losses = [
        reference.imm_loss(
            restricted.probs_numpy(tokens[row : row + 1, step - length + 1 : step + 1])[
                0
            ],
            probs[row, step],
        )
        for row in range(len(tokens))
        for step in range(length - 1, tokens.shape[1])
        if weights[row, step] > 0
    ]
    return np.mean(losses)


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("floor", [0.0, 0.1])
@pytest.mark.parametrize("apart", [False, True])
def test_the_term_is_the_mean_over_positions(order, floor, apart):
    restricted = fixtures.restricted_model(order).with_floor(floor)
    words = fixtures.stream(33)
    element = next(iter(fixtures.batches(words, 2, 20).dataset()))
    model = fixtures.eager(OwnContexts(separate_clipping=apart), restricted=restricted)
    expected = _naive(model.model, restricted, element)
    assert fixtures.step(model, element)["imm"] == pytest.approx([expected], rel=1e-5)


def _steps(contexts, restricted, **options):
    model = fixtures.wrapper(contexts, restricted=restricted, **options)
    return fixtures.step_gradient(model, fixtures.element())


def test_steps_are_those_of_dense_distributions(monkeypatch):
    restricted = fixtures.restricted_model(3)
    sparse = _steps(OwnContexts(), restricted)
    monkeypatch.setattr(KneserNey, "has_sparse_probs", lambda self: False)
    np.testing.assert_allclose(_steps(OwnContexts(), restricted), sparse, atol=1e-6)
    apart = OwnContexts(separate_clipping=True)
    np.testing.assert_allclose(_steps(apart, restricted), sparse, atol=1e-6)


def test_positions_without_equals_are_groups_of_one():
    """Where no context comes twice, in-batch matching is the same."""
    words = np.arange(1, fixtures.VOCABULARY, dtype=np.int32)
    element = next(iter(fixtures.batches(words, 1, len(words)).dataset()))
    found = [
        fixtures.step_gradient(fixtures.wrapper(contexts), element)
        for contexts in (OwnContexts(), InBatchContexts(min_count=1))
    ]
    np.testing.assert_allclose(*found, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        lambda: RegularizedLanguageModel(7, LSTMCell(4), 1, mixture_components=2),
        lambda: RegularizedLanguageModel(7, LSTMCell(4), 1, dropout_samples=2),
        fixtures.causal_transformer,
    ],
    ids=["mixture", "samples", "any-keras-model"],
)
def test_other_models(model):
    restricted = fixtures.restricted_model(3)
    wrapped = fixtures.eager(OwnContexts(), model=model(), restricted=restricted)
    expected = _naive(wrapped.model, restricted, fixtures.element())
    found = fixtures.step(wrapped, fixtures.element())["imm"]
    assert found == pytest.approx([expected], rel=1e-5)


def test_restricted_models_of_any_kind_and_several():
    table = np.random.default_rng(0).dirichlet(np.ones(7), 7)
    pairs = [(TabularModel.from_probs(table), 0.5), (fixtures.restricted_model(3), 0.5)]
    model = fixtures.eager(OwnContexts(), restricted=pairs)
    found = fixtures.step(model, fixtures.element())
    assert found["imm_0"][0] > 0 and found["imm_1"][0] > 0
    assert found["imm_coverage"][0] == 1.0 and found["imm_count"][0] == 1.0


@pytest.mark.landing
def test_two_replicas_equal_one(two_replicas):
    assert_two_replicas_equal_one(
        two_replicas,
        lambda: fixtures.wrapper(
            OwnContexts(), restricted=fixtures.restricted_model(3)
        ),
        [fixtures.element()],
    )


def test_mistakes():
    with pytest.raises(ValueError, match="OwnContexts have one pass"):
        fixtures.wrapper(OwnContexts(), gradient="crosstalk")
    with pytest.raises(ValueError, match="short contexts of 3 words need windows"):
        model = fixtures.wrapper(OwnContexts(), restricted=fixtures.restricted_model(4))
        fixtures.step(model, next(iter(fixtures.batches(None, 4, 2).dataset())))


# === Sparse rows of n-grams ===


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_sparse_rows_are_the_rows(order, floor):
    restricted = fixtures.restricted_model(order).with_floor(floor)
    contexts = np.random.default_rng(1).integers(0, 7, [9, order - 1])
    assert restricted.has_sparse_probs()
    sparse = restricted.sparse_probs(contexts)
    np.testing.assert_allclose(
        sparse.dense(), restricted.probs_numpy(contexts), atol=1e-6
    )
    assert sparse.bases.shape == (1 + (floor > 0), 7)
    assert np.min(sparse.values, initial=0) >= 0
    # Contexts of one word that most words follow are distributions, and no entries.
    for most in (1, 3, 50):
        fewer = restricted.sparse_probs(contexts, long_rows=most)
        np.testing.assert_allclose(fewer.dense(), sparse.dense(), atol=1e-6)
        np.testing.assert_allclose(fewer.mass(), sparse.mass(), atol=1e-6)
        # Seven words, and the context that is none.
        long = min(most, 8) if order > 1 else 0
        assert fewer.bases.shape == (1 + (floor > 0) + long, 7)
        assert len(fewer.values) <= len(sparse.values)
        if order == 2 and most == 50:
            assert len(fewer.values) == 0 < len(sparse.values)


def test_words_below_their_share_are_not_additive():
    restricted = fixtures.restricted_model(2)
    tables = restricted.tables()
    tables.levels[0].extra[0] = -0.1
    other = KneserNey(2)
    other.set_tables(tables)
    assert not other.has_sparse_probs()

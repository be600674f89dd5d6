"""The bank of recent predictions behind in-batch induced models."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.imm_lm.counts import effective_counts
from rlm_tf.models import InBatchContexts, InducedModelMatching
from rlm_tf.models.imm.prediction_bank import PredictionBank
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference
from tests.references.in_batch_bank import NaiveInBatch

# A few steps each: tracing graphs took most of the time.
pytestmark = pytest.mark.eager


def _predictions(model, element):
    """What the language model is about to predict, without dropout."""
    (tokens, start), _, _ = element
    states = model.starting_states(start, training=True)
    features, _ = model.forward(tokens, states, training=False)
    logits = model.output_logits(features).numpy()
    return reference.softmax(logits.astype(np.float64))


@pytest.mark.parametrize(
    ("order", "dropout", "options"),
    [
        (2, 0.0, {"min_count": 1, "bank_size": 13, "bank_target": 4}),
        (2, 0.0, {"min_count": 4, "bank_size": 7}),
        (2, 0.0, {"min_count": 3, "bank_size": 50, "bank_target": 9}),
        (3, 0.0, {"min_count": 2, "bank_size": 60, "separate_clipping": True}),
        (2, 0.5, {"min_count": 3, "bank_size": 25, "pass_mode": "evaluation"}),
        (3, 0.5, {"min_count": 1, "bank_size": 0, "pass_mode": "evaluation"}),
    ],
)
def test_loss_and_counts_are_those_of_positions_one_by_one(order, dropout, options):
    """Weights stand still, carried states go on; some positions have no weight."""
    restricted = fixtures.restricted_model(order)
    language_model = fixtures.language_model(dropout=dropout)
    model = fixtures.wrapper(
        InBatchContexts(**options), model=language_model, restricted=restricted
    )
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    naive = NaiveInBatch(
        restricted,
        options["min_count"],
        options["bank_size"],
        options.get("bank_target"),
    )
    rng = np.random.default_rng(6)
    dropped, matched = False, 0.0
    for x, y, weights in fixtures.batches(None, 3, 6).dataset().take(5):
        weights *= rng.choice([0.0, 0.5, 1.0], weights.shape, p=[0.2, 0.1, 0.7])
        predictions = _predictions(language_model, (x, y, weights))
        losses, counted, counts = naive.step(x[0].numpy(), weights.numpy(), predictions)
        logs = fixtures.step(model, (x, y, weights))
        expected = sum(losses) / max(sum(counted), 0.5)
        np.testing.assert_allclose(logs["imm"], [expected], rtol=2e-6)
        matched += sum(counted)
        np.testing.assert_allclose(logs["imm_count"], [np.mean(counts)], rtol=1e-6)
        for percentage in (25, 50, 75):
            quantile = np.percentile(counts, percentage, method="inverted_cdf")
            assert f"imm_count_p{percentage}" not in logs
            found = model.count_quantiles.result()[f"imm_count_p{percentage}"]
            assert found == quantile
        enough = np.array(counts) >= options["min_count"]
        np.testing.assert_allclose(logs["imm_coverage"], [enough.mean()], rtol=1e-6)
        dropped |= not enough.all()
    assert matched > 5 and (dropped or options["min_count"] == 1)


@pytest.mark.landing
def test_every_replica_has_a_bank_of_its_own(two_replicas):
    restricted = fixtures.restricted_model()
    options = {"min_count": 4, "bank_size": 9}
    with two_replicas.scope():
        model = fixtures.wrapper(InBatchContexts(**options), restricted=restricted)
        model.compile(keras.optimizers.SGD(0.0))
    alone = fixtures.language_model()
    alone.compile(keras.optimizers.SGD(0.0))
    halves = [(slice(0, 3), NaiveInBatch(restricted, **options))]
    halves.append((slice(3, 6), NaiveInBatch(restricted, **options)))
    for element in fixtures.batches(None, 6, 5).dataset().take(3):
        (tokens, _), _, weights = element
        predictions = _predictions(alone, element)
        fixtures.step(alone, element)
        both = [
            naive.step(tokens.numpy()[half], weights.numpy()[half], predictions[half])
            for half, naive in halves
        ]
        losses, counted, counts = (
            np.concatenate(parts) for parts in zip(*both, strict=True)
        )
        logs = fixtures.fit(model, tf.data.Dataset.from_tensor_slices(element).batch(6))
        np.testing.assert_allclose(logs["imm"], [sum(losses) / sum(counted)], rtol=2e-6)
        np.testing.assert_allclose(logs["imm_count"], [np.mean(counts)], rtol=1e-6)


@pytest.mark.parametrize(
    ("order", "bank_size"),
    [
        (2, 0),
        (3, 15),
        pytest.param(2, 15, marks=pytest.mark.landing),
        pytest.param(2, 300, marks=pytest.mark.landing),
        pytest.param(3, 0, marks=pytest.mark.landing),
        (3, 300),
    ],
)
def test_counts_of_a_run_are_the_ones_that_its_row_will_name(order, bank_size):
    options = {"min_count": 3, "bank_size": bank_size}
    if bank_size:
        options["bank_target"] = 6
    model = fixtures.wrapper(
        InBatchContexts(**options), restricted=fixtures.restricted_model(order)
    )
    batches = fixtures.batches(None, 4, 10)
    logs = fixtures.fit(model, batches.dataset())
    counts = effective_counts(batches, order - 1, fixtures.VOCABULARY, bank_size, 6)
    np.testing.assert_allclose(logs["imm_count"], [counts["mean"]], rtol=1e-6)


def test_bank_of_the_same_batch_repeats_its_predictions():
    """With learning rate 0 the second step finds the first one's predictions."""
    element = fixtures.element()
    contexts = InBatchContexts(min_count=1, bank_size=40, bank_target=1000)
    model = fixtures.wrapper(contexts)
    model.compile(keras.optimizers.SGD(0.0))
    data = tf.data.Dataset.from_tensors(element)
    first = model.fit(data, verbose=0, shuffle=False).history
    second = model.fit(data, verbose=0, shuffle=False).history
    # Every context starts the window from zero both times: same means, twice the count.
    np.testing.assert_allclose(second["imm"], first["imm"], rtol=1e-5)
    np.testing.assert_allclose(second["imm_count"][0], 2 * first["imm_count"][0])


@pytest.mark.landing
def test_bank_raises_rare_contexts_over_the_threshold():
    data = fixtures.batches().dataset()
    alone = fixtures.wrapper(InBatchContexts(min_count=8))
    banked = fixtures.wrapper(InBatchContexts(min_count=8, bank_size=200))
    without = alone.fit(data, verbose=0, shuffle=False).history
    with_bank = banked.fit(data, verbose=0, shuffle=False).history
    assert with_bank["imm_coverage"][0] > without["imm_coverage"][0] + 0.1
    assert np.isfinite(with_bank["imm"][0])


def test_bank_takes_only_finite_predictions():
    bank = PredictionBank(3, 2)
    features = tf.constant([[1.0, 2.0], [np.nan, 0.0], [3.0, 4.0], [0.0, np.inf]])
    bank.write(features, tf.constant([5, 6, 7, 8], tf.int64))
    np.testing.assert_array_equal(bank.keys, [5, 7])
    np.testing.assert_array_equal(bank.features, [[1.0, 2.0], [3.0, 4.0]])


def test_bank_keeps_the_last_words_of_a_window():
    words = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
    element = ((words, np.ones(2, np.int32)), words, np.ones((2, 3), np.float32))
    model = fixtures.wrapper(InBatchContexts(min_count=1, bank_size=4))
    model.fit(tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False)
    np.testing.assert_array_equal(model.contexts.banks[0].keys, [2, 5, 1, 4])


def test_bank_needs_a_model_with_features():
    model = keras.Sequential(
        [
            keras.layers.Embedding(fixtures.VOCABULARY, 4),
            keras.layers.Dense(fixtures.VOCABULARY),
        ]
    )
    with pytest.raises(ValueError, match="`bank_size` needs a language model"):
        InducedModelMatching(
            model, fixtures.restricted_model(), InBatchContexts(bank_size=10)
        )

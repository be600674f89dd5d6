"""What the published code does and the text does not say, inside the training step."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.imm import imm_fixtures as fixtures

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager


def test_authors_variant_changes_embedding_and_soft_targets():
    """Step 0 has k samples and twice the embedding gradient, step 1 soft targets."""
    data = list(fixtures.batches().dataset().take(2))
    options = {"variant": "authors", "every": 2, "coefficient": 0.0}
    plain = fixtures.step_gradient(
        fixtures.compiled(fixtures.language_model()), data[0]
    )
    model = fixtures.wrapper(fixtures.sampled(k=3, window=6), **options)
    found = fixtures.step_gradient(model, data[0])
    size = model.model.embedding.weights[0].shape.num_elements()
    factor = np.where(np.arange(len(plain)) < size, 2.0, 1.0)
    np.testing.assert_allclose(found, factor * plain, atol=1e-6)
    model = fixtures.wrapper(
        fixtures.sampled(k=3, window=6), **{**options, "coefficient": 1.0}
    )
    logs = model.fit(tf.data.Dataset.from_tensors(data[0]), verbose=0, shuffle=False)
    assert logs.history["imm"][0] > 0 and logs.history["imm_soft"][0] == 0
    before = fixtures.flat_weights(model)
    logs = model.fit(tf.data.Dataset.from_tensors(data[1]), verbose=0, shuffle=False)
    assert logs.history["imm"][0] == 0 and logs.history["imm_soft"][0] > 0
    assert np.abs(before - fixtures.flat_weights(model)).max() > 1e-4


def test_soft_target_loss_is_the_mixture_of_label_and_back_off():
    data = list(fixtures.batches().dataset().take(2))
    model = fixtures.wrapper(
        fixtures.sampled(k=3, window=6), variant="authors", every=2
    )
    model.compile(keras.optimizers.SGD(0.0))
    model.fit(tf.data.Dataset.from_tensors(data[0]), verbose=0, shuffle=False)
    logs = model.fit(tf.data.Dataset.from_tensors(data[1]), verbose=0, shuffle=False)
    plain = fixtures.compiled(fixtures.language_model(), 0.0)
    plain.fit(tf.data.Dataset.from_tensors(data[0]), verbose=0, shuffle=False)
    (tokens, start), y, _ = data[1]
    log_probs = tf.nn.log_softmax(plain((tokens, start), training=True)).numpy()
    restricted = model.restricted_models[0]
    missing = restricted.missing_mass(tf.reshape(tokens, [-1])).numpy().reshape(4, 10)
    target = missing[..., None] * restricted.continuation_probs
    target += (1 - missing)[..., None] * np.eye(fixtures.VOCABULARY)[y.numpy()]
    expected = -np.mean(np.sum(target * log_probs, axis=-1))
    np.testing.assert_allclose(logs.history["imm_soft"], [expected], rtol=1e-5)

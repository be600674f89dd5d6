"""Files and checkpoints of the wrapper."""

from __future__ import annotations

import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import (
    InBatchContexts,
    RecurrentLanguageModel,
    SampledContexts,
)
from rlm_tf.restricted import NeuralRestrictedModel
from tests.models.imm import imm_fixtures as fixtures

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

# === Files ===


def test_file_keeps_default_arguments_and_the_optimiser(tmp_path):
    model = fixtures.wrapper(InBatchContexts(min_count=2))
    model.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    element = fixtures.element()
    fixtures.step(model, element)
    loaded = fixtures.round_trip(model, tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(element[0][0]), model(element[0][0]))
    assert loaded.coefficients == [0.2]
    assert (loaded.every, loaded.gradient, loaded.variant) == (1, "direct", "paper")
    assert loaded.contexts is None
    with pytest.raises(ValueError, match=r"no contexts\. A loaded model has none"):
        fixtures.step(loaded, element)
    loaded.contexts = InBatchContexts(min_count=2)
    # The second step uses Adam's moments, which were in the file.
    fixtures.step(loaded, element)
    fixtures.step(model, element)
    np.testing.assert_array_equal(
        fixtures.flat_weights(loaded), fixtures.flat_weights(model)
    )


def test_file_keeps_other_arguments(tmp_path):
    schedule = keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.1)
    restricted = [
        (fixtures.restricted_model(2), schedule),
        (fixtures.restricted_model(3), 0.3),
    ]
    model = fixtures.eager(
        fixtures.sampled(seed=4),
        model=fixtures.language_model(seed=9),
        restricted=restricted,
        every=2,
        gradient="crosstalk",
        clip_norm=0.2,
        loss_scale=3.0,
        name="imm",
    )
    data = list(fixtures.batches().dataset().take(2))
    fixtures.step(model, data[0])
    loaded = fixtures.round_trip(model, tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert (loaded.every, loaded.gradient) == (2, "crosstalk")
    assert (loaded.clip_norm, loaded.loss_scale, loaded.name) == (0.2, 3.0, "imm")
    assert float(loaded.coefficients[0](5)) == pytest.approx(0.3)
    assert loaded.coefficients[1] == 0.3
    tokens = data[0][0][0]
    np.testing.assert_array_equal(loaded(tokens), model(tokens))
    contexts = [[1, 2], [3, 3]]
    np.testing.assert_array_equal(
        loaded.restricted_models[1].log_probs(contexts),
        model.restricted_models[1].log_probs(contexts),
    )
    loaded.contexts = fixtures.sampled(seed=4)
    # Draws depend on the optimiser's step, which was in the file; rows start anew,
    # because the carried state was not.
    (tokens, _), *rest = data[1]
    element = ((tokens, tf.ones(4, tf.int32)), *rest)
    fixtures.step(loaded, element)
    fixtures.step(model, element)
    np.testing.assert_array_equal(
        fixtures.flat_weights(loaded), fixtures.flat_weights(model)
    )


def test_file_of_the_authors_variant(tmp_path):
    model = fixtures.eager(fixtures.sampled(), variant="authors")
    loaded = fixtures.round_trip(model, tmp_path / "model.keras")
    assert loaded.variant == "authors"
    loaded.contexts = fixtures.sampled()
    logs = fixtures.step(loaded, fixtures.element())
    assert logs["imm"][0] > 0 and "imm_soft" in logs


def test_file_holds_no_training_text(tmp_path):
    text = np.random.default_rng(1).integers(0, fixtures.VOCABULARY, 20_000)
    restricted = fixtures.restricted_model()
    sizes = []
    for length in (500, 20_000):
        contexts = SampledContexts(text[:length], k=2, window=4)
        model = fixtures.wrapper(contexts, restricted=restricted, name="imm")
        model.save(tmp_path / "model.keras")
        with zipfile.ZipFile(tmp_path / "model.keras") as archive:
            content = b"".join(archive.read(name) for name in archive.namelist())
        sizes.append(len(content))
        for dtype in (np.int8, np.int32, np.int64):
            assert text[100:116].astype(dtype).tobytes() not in content
        for separator in (" ", ",", ", "):
            assert separator.join(map(str, text[100:116])).encode() not in content
    # Names that Keras numbers may have one digit more.
    assert abs(sizes[0] - sizes[1]) < 50


# === Checkpoints ===


def test_checkpoint_keeps_states_banks_and_restricted_models(tmp_path):
    restricted = [
        (fixtures.restricted_model(3), 0.2),
        (NeuralRestrictedModel(fixtures.VOCABULARY, 1, seed=2), 0.1),
    ]
    language_model = RecurrentLanguageModel(
        fixtures.VOCABULARY, 8, 2, projection_width=6, jit_loop=False
    )
    model = fixtures.eager(
        InBatchContexts(min_count=2, bank_size=30),
        model=language_model,
        restricted=restricted,
    )
    fixtures.fit(model, fixtures.batches().dataset().take(2))
    carried = tf.nest.flatten(language_model.carried_states(training=True))
    banks = [v for bank in model.contexts.banks for v in (bank.features, bank.keys)]
    assert all(np.any(np.asarray(v)) for v in (*carried, *banks))

    def variables():
        states = tf.nest.flatten(language_model.carried_states(training=True))
        return [*model.variables, *states, *banks]

    before = [np.array(tf.convert_to_tensor(v)) for v in variables()]
    prediction = model.restricted_models[0].probs([[1, 2]]).numpy()
    path = tf.train.Checkpoint(model=model).save(tmp_path / "checkpoint")
    for variable in (*model.variables, *banks):
        variable.assign(tf.zeros_like(tf.convert_to_tensor(variable)))
    language_model.reset_states(3)
    status = tf.train.Checkpoint(model=model).restore(path)
    status.assert_existing_objects_matched()
    for found, expected in zip(variables(), before, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(found), expected)
    np.testing.assert_array_equal(
        model.restricted_models[0].probs([[1, 2]]), prediction
    )

"""What every public Keras class must be able to do."""

from __future__ import annotations

import inspect
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import layers, metrics, models, restricted
from tests.conformance.public_classes import ROWS
from tests.conformance.row import Row


@pytest.fixture(scope="module", params=ROWS, ids=[row.name for row in ROWS])
def made(request) -> tuple[Row, Any, np.ndarray]:
    """A row, its object, and what using it gives."""
    row = request.param
    thing = row.make()
    return row, thing, np.array(row.use(thing))


def test_outputs_are_finite_numbers(made):
    row, _, output = made
    assert output.size and not np.any(np.isnan(output)), row.name


def test_constructor_arguments_are_attributes_and_config_keys(made):
    _, thing, _ = made
    config = thing.get_config()
    for name, parameter in inspect.signature(type(thing).__init__).parameters.items():
        if name in ("self", "contexts", "coefficient") or parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            # Contexts never go into a file; coefficients go with their models.
            continue
        assert name in config, name
        assert hasattr(thing, name) or name == "restricted_model", name


def test_serialised_object_with_the_same_weights_gives_the_same(made):
    row, thing, output = made
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(thing)
    )
    assert type(restored) is type(thing)
    if hasattr(thing, "set_weights"):
        if len(restored.weights) < len(thing.weights):
            row.use(restored)
        restored.set_weights(thing.get_weights())
    np.testing.assert_array_equal(np.array(row.use(restored)), output)


def test_it_runs_in_a_graph(made):
    row, thing, output = made
    if isinstance(thing, keras.metrics.Metric):
        thing.reset_state()
    found = tf.function(lambda: row.use(thing))()
    np.testing.assert_allclose(found, output, rtol=2e-5, atol=1e-6)


def test_a_model_that_holds_it_is_saved_and_loaded_in_safe_mode(made, tmp_path):
    row, thing, output = made
    if not isinstance(thing, keras.Model):
        pytest.skip("only models have files of their own")
    thing.compile(keras.optimizers.SGD(0.1))
    thing.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(np.array(row.use(loaded)), output)


def test_models_are_exported_as_saved_models(made, tmp_path):
    row, thing, output = made
    if not isinstance(thing, keras.Model):
        pytest.skip("only models are exported")
    module = tf.Module()
    module.model = thing

    def spec(example: np.ndarray) -> tf.TensorSpec:
        width = None if example.dtype == np.int32 else example.shape[1]
        return tf.TensorSpec([None, width], example.dtype)

    signature = [tf.nest.map_structure(spec, row.example)]
    module.call = tf.function(lambda t: row.read(thing(t)), input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "saved"))
    reloaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(reloaded.call(row.example), output, atol=1e-6)


UPWARDS = {
    "accuracy",
    "imm_count",
    "imm_coverage",
    "kl",
    "representational_kl",
    "return",
}


def test_callbacks_know_which_way_every_metric_of_a_model_is_better(made):
    """Watches private parts of Keras, too, on which that depends."""
    _, thing, _ = made
    if not isinstance(thing, models.ObjectiveModel):
        pytest.skip("only these models have metrics of their own")
    names = set(thing.get_metrics_result())
    assert "loss" in names
    for name in names:
        better = [1.0, 2.0] if name in UPWARDS else [2.0, 1.0]
        for values in (better, better[::-1]):
            stopping = keras.callbacks.EarlyStopping(f"val_{name}", patience=9)
            stopping.set_model(thing)
            stopping.on_train_begin()
            for epoch, value in enumerate(values):
                stopping.on_epoch_end(epoch, {f"val_{name}": value})
            assert stopping.best == better[1], name


def test_models_train_on_two_replicas(made, two_replicas):
    row, thing, _ = made
    if not isinstance(thing, keras.Model):
        pytest.skip("only models train")
    with two_replicas.scope():
        model = row.make()
        model.compile(keras.optimizers.SGD(0.1))
    data = tf.data.Dataset.from_tensor_slices(row.batch).batch(2)
    history = model.fit(data, epochs=2, verbose=0, shuffle=False).history
    assert np.isfinite(history["loss"]).all()


def test_every_public_class_has_a_row():
    public = {
        name
        for module in (layers, metrics, models, restricted)
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
        and issubclass(getattr(module, name), keras.Layer | keras.metrics.Metric)
        and keras.saving.get_registered_name(getattr(module, name)).startswith(
            "rlm_tf>"
        )
    }
    # Read from files; its round trip is in tests/restricted/test_arpa.py.
    assert public - {row.name for row in ROWS} == {"ArpaModel"}

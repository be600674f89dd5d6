"""What every public Keras class must be able to do."""

from __future__ import annotations

import inspect

import keras
import numpy as np
import tensorflow as tf

from rlm_tf import distillation, layers, metrics, models, restricted
from tests.conformance.public_classes import ROWS


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


UPWARDS = {
    "agreement",
    "accuracy",
    "effective_sample_size",
    "f1",
    "generator_accuracy",
    "imm_count",
    "imm_coverage",
    "kl",
    "mine",
    "pair_accuracy",
    "representational_kl",
    "return",
    "reward",
}


def test_callbacks_know_which_way_every_metric_of_a_model_is_better(made_model):
    """Watches private parts of Keras, too, on which that depends."""
    _, model, _ = made_model
    names = set(model.get_metrics_result())
    assert "loss" in names
    for name in names:
        better = [1.0, 2.0] if name in UPWARDS else [2.0, 1.0]
        for values in (better, better[::-1]):
            stopping = keras.callbacks.EarlyStopping(f"val_{name}", patience=9)
            stopping.set_model(model)
            stopping.on_train_begin()
            for epoch, value in enumerate(values):
                stopping.on_epoch_end(epoch, {f"val_{name}": value})
            assert stopping.best == better[1], name


def test_every_public_class_has_a_row():
    public = {
        name
        for module in (distillation, layers, metrics, models, restricted)
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
        and issubclass(getattr(module, name), keras.Layer | keras.metrics.Metric)
        and keras.saving.get_registered_name(getattr(module, name)).startswith(
            "rlm_tf>"
        )
    }
    # Read from files; its round trip is in tests/restricted/ngrams/test_arpa.py.
    assert public - {row.name for row in ROWS} == {"ArpaModel"}

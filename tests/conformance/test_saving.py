"""What every public model must be able to do: go into files and come back."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf


def test_a_model_is_saved_and_loaded_in_safe_mode(made_model, tmp_path):
    row, model, output = made_model
    model.compile(keras.optimizers.SGD(0.1))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(np.array(row.use(loaded)), output)


def test_models_are_exported_as_saved_models(made_model, tmp_path):
    row, model, output = made_model
    module = tf.Module()
    module.model = model

    def spec(example: np.ndarray) -> tf.TensorSpec:
        width = None if example.dtype == np.int32 else example.shape[1]
        return tf.TensorSpec([None, width], example.dtype)

    signature = [tf.nest.map_structure(spec, row.example)]
    module.call = tf.function(lambda t: row.read(model(t)), input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "saved"))
    reloaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(reloaded.call(row.example), output, atol=1e-6)

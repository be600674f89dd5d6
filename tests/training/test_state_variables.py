"""Finding every variable that a run depends on."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models.language.recurrent_language_model import RecurrentLanguageModel
from rlm_tf.training.state_variables import (
    first_not_finite,
    read,
    state_variables,
    write,
)


class Bank:
    """A plain object that keeps variables, as samplers and banks do."""

    def __init__(self):
        self.rows = [tf.Variable([1.0]), tf.Variable([2])]
        self.generators = {"draws": keras.random.SeedGenerator(3)}


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.again = self.dense
        self.dropouts = [keras.layers.Dropout(0.5), keras.layers.GaussianNoise(0.1)]
        self.bank = Bank()
        self.module = tf.Module()
        self.module.state = (tf.Variable(0.0),)
        self.bank.owner = self
        self.dense.build((None, 3))
        self.built = True

    def call(self, x):
        return self.dense(x)


def test_finds_every_kind_of_variable_once():
    model = Model()
    model.compile(keras.optimizers.Adam(), "mse", metrics=["mae"])
    model.train_on_batch(np.ones([2, 3]), np.ones([2, 1]))
    found = state_variables(model)
    expected = [
        *model.variables,
        *model.optimizer.variables,
        *model.metrics_variables,
        model.bank.generators["draws"].state,
    ]
    expected = [v.value for v in expected] + [*model.bank.rows, *model.module.state]
    assert {id(v) for v in found.values()} == {id(v) for v in expected}
    assert len(found) == len({id(v) for v in found.values()})
    # The name of a variable does not depend on what the model has done since.
    model.evaluate(np.ones([2, 3]), np.ones([2, 1]), verbose=0)
    model.predict(np.ones([2, 3]), verbose=0)
    assert list(state_variables(model)) == list(found)


def test_covers_what_checkpoints_of_a_language_model_need():
    model = RecurrentLanguageModel(7, 4, 2, dropout=0.1)
    found = {id(v) for v in state_variables(model).values()}
    carried = [*model.training_state.values, *model.evaluation_state.values]
    masks = [layer.seed_generator.state.value for layer in model.dropout_layers]
    assert len(masks) == 3
    for variable in [*carried, *masks]:
        assert id(variable) in found


def test_write_undoes_changes():
    model = Model()
    variables = state_variables(model)
    before = read(variables)
    for variable in variables.values():
        variable.assign(variable + tf.ones_like(variable))
    write(variables, before, "here")
    for name, value in read(variables).items():
        np.testing.assert_array_equal(value, before[name])


def test_write_refuses_what_does_not_fit():
    variables = {"a": tf.Variable([1.0, 2.0])}
    with pytest.raises(ValueError, match=r"here .* only the checkpoint has \['b'\]"):
        write(variables, {"a": np.zeros(2, np.float32), "b": np.zeros(1)}, "here")
    with pytest.raises(ValueError, match=r"only the model has \['a'\]"):
        write(variables, {}, "here")
    with pytest.raises(ValueError, match=r"`a` has shape \[3\], the model expects"):
        write(variables, {"a": np.zeros(3, np.float32)}, "here")
    with pytest.raises(ValueError, match=r"`a` is float64, the model expects float32"):
        write(variables, {"a": np.zeros(2)}, "here")


def test_first_not_finite():
    model = Model()
    assert first_not_finite(model) is None
    model.dense.bias.assign([np.inf])
    assert first_not_finite(model) == model.dense.bias.path

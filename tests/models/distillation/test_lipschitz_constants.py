"""Lipschitz constants of models: by hand, nested, shared, recurrent; mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import RecurrentLanguageModel, lipschitz_constants
from rlm_tf.models.distillation.layer_paths import layer_at, layers_by_path
from rlm_tf.models.image import wide_resnet
from rlm_tf.objectives import lipschitz


def _image_model():
    x = inputs = keras.Input([6, 6, 2])
    x = keras.layers.Conv2D(4, 3, strides=2, groups=2, name="conv")(x)
    x = keras.layers.BatchNormalization(name="norm", epsilon=1e-5)(x)
    x = keras.layers.DepthwiseConv2D(3, padding="same", name="depthwise")(x)
    inner = keras.Model(inputs, x, name="inner")
    shared = keras.layers.Dense(4, name="shared")
    y = keras.layers.GlobalAveragePooling2D(name="pooled")(inner(inputs))
    return keras.Model(inputs, shared(shared(y)), name="outer")


def test_constants_of_nested_models_by_hand():
    model = _image_model()
    rng = np.random.default_rng(0)
    for weight in model.weights:
        lowest = 0.1 if "variance" in weight.path else -0.3
        weight.assign(lowest + rng.random(weight.shape))
    found = lipschitz_constants(model)
    assert set(found) == {"inner/conv", "inner/norm", "inner/depthwise", "shared"}
    layers = layers_by_path(model)
    norm = layers["inner/norm"]
    expected = {
        "inner/conv": lipschitz.conv(
            layers["inner/conv"].kernel.value, strides=2, groups=2
        ),
        "inner/norm": np.max(np.abs(norm.gamma) / np.sqrt(norm.moving_variance + 1e-5)),
        "inner/depthwise": np.abs(layers["inner/depthwise"].kernel)
        .sum(axis=(0, 1, 3))
        .max(),
        # Used twice, and counted once.
        "shared": np.abs(layers["shared"].kernel).sum(axis=1).max(),
    }
    for path, value in expected.items():
        assert float(found[path]) == pytest.approx(float(value), rel=1e-6), path
    most = lipschitz_constants(model, norm="inf", ignore=["inner"])
    assert set(most) == {"shared"}
    expected_most = np.abs(layers["shared"].kernel).sum(axis=0).max()
    assert float(most["shared"]) == pytest.approx(expected_most, rel=1e-6)
    authors = lipschitz_constants(model, variant="authors")["inner/conv"]
    expected_sum = np.abs(layers["inner/conv"].kernel).sum()
    assert float(authors) == pytest.approx(expected_sum, rel=1e-6)


def test_gradients_reach_kernels_and_not_moving_variances():
    model = _image_model()
    with tf.GradientTape() as tape:
        total = tf.add_n(list(lipschitz_constants(model).values()))
    slopes = tape.gradient(total, model.trainable_variables)
    by_path = dict(
        zip([v.path for v in model.trainable_variables], slopes, strict=True)
    )
    for path, slope in by_path.items():
        assert (slope is None) == path.endswith(("bias", "beta")), path


def test_recurrent_models_have_a_constant_a_kernel():
    model = RecurrentLanguageModel(7, width=3, num_layers=2)
    model(np.zeros([1, 2], np.int32))
    found = lipschitz_constants(model)
    cell = layers_by_path(model)["recurrent_0/lstm_cell"]
    for part in ("kernel", "recurrent_kernel"):
        expected = np.abs(getattr(cell, part)).sum(axis=1).max()
        path = f"recurrent_0/lstm_cell/{part}"
        assert float(found[path]) == pytest.approx(expected, rel=1e-6)
    output = np.abs(model.output_layer.kernel).sum(axis=0).max()
    assert float(found["output"]) == pytest.approx(output, rel=1e-6)
    assert len(found) == 6
    keras_model = keras.Sequential(
        [keras.Input([3, 2]), keras.layers.GRU(4, name="gru"), keras.layers.Dense(2)]
    )
    assert "gru/gru_cell/recurrent_kernel" in lipschitz_constants(keras_model)


def test_half_precision_is_computed_in_single():
    model = keras.Sequential(
        [keras.Input([3]), keras.layers.Dense(2, dtype="float16", name="half")]
    )
    assert lipschitz_constants(model)["half"].dtype == tf.float32


def test_paths_of_subclassed_models_and_of_layers_with_one_name():
    class Block(keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.first = keras.layers.Dense(2, name="dense")
            self.second = keras.layers.Dense(2, name="dense")

        def call(self, x):
            return self.second(self.first(x))

    model = keras.Sequential([keras.Input([2]), Block(name="block")])
    paths = layers_by_path(model)
    assert {"block", "block/dense", "block/dense_1"} <= set(paths)
    assert layer_at("f", model, "block/dense_1") is paths["block"].second
    with pytest.raises(ValueError, match=r"f: .* no layer 'block/dens'; the nearest: "):
        layer_at("f", model, "block/dens")


def test_mistakes_are_named():
    model = keras.Sequential(
        [keras.Input([3]), keras.layers.LayerNormalization(name="norm")]
    )
    model.add(keras.layers.GroupNormalization(1, name="groups", center=False))
    with pytest.raises(
        ValueError,
        match=r"of norm \(LayerNormalization, with gamma\); groups \(GroupNormalization"
        r", with gamma\)\. To leave them out: ignore=\['norm', 'groups'\]",
    ):
        lipschitz_constants(model)
    with pytest.raises(ValueError, match=r"ignore=\['norm', 'groups'\]"):
        lipschitz_constants(model, ignore=["norm"])
    model.pop()
    assert lipschitz_constants(model, ignore=["norm"]) == {}
    with pytest.raises(ValueError, match="`ignore` names 'nrm', which is no layer"):
        lipschitz_constants(model, ignore=["nrm"])
    with pytest.raises(ValueError, match="is not built"):
        lipschitz_constants(keras.Sequential([keras.layers.Dense(2)]))
    with pytest.raises(ValueError, match="`norm` must be one of one, inf"):
        lipschitz_constants(_image_model(), norm="two")


def test_the_published_weight_goes_with_the_authors_sum():
    model = wide_resnet(40, 2, 100)
    exact, authors = (
        1e-5 * float(sum(lipschitz_constants(model, variant=variant).values()))
        for variant in ("exact", "authors")
    )
    assert authors == pytest.approx(0.85, rel=0.03)
    assert exact == pytest.approx(0.0114, rel=0.1)

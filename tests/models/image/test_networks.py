"""Networks for images: sizes, features, plain versions of their blocks, files."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models.image import resnet, shufflenet_v2, small_resnet, wide_resnet
from tests.references.distillation_reference import ORACLE

_COUNTS = ORACLE["parameter_counts"]
_SMALL = (8, 8, 1)


def _count(model):
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: wide_resnet(40, 2, 100), "wrn_40_2"),
        (lambda: wide_resnet(40, 1, 100), "wrn_40_1"),
        (lambda: wide_resnet(16, 2, 100), "wrn_16_2"),
        (lambda: small_resnet(32, (32, 64, 128, 256), 100), "resnet32x4"),
        (lambda: small_resnet(8, (32, 64, 128, 256), 100), "resnet8x4"),
        (lambda: shufflenet_v2(100), "ShuffleV2_1x"),
    ],
)
def test_parameters_are_those_of_the_oracle(make, expected):
    assert _count(make()) == _COUNTS["trainable_100_classes_3x32x32"][expected]


@pytest.mark.landing
def test_parameters_of_large_ones_and_of_digits_are_those_of_the_oracle():
    large = _COUNTS["imagenet_1000_classes_7x7_stem"]
    known = {
        _COUNTS["tiny_imagenet_200_classes_3x3_stem"]["resnet18"]: resnet(
            (2, 2, 2, 2), 200
        ),
        large["resnet18"]: resnet((2, 2, 2, 2), 1000, stem="imagenet"),
        large["resnet152"]: resnet(
            (3, 8, 36, 3), 1000, bottleneck=True, stem="imagenet"
        ),
        _COUNTS["digits_10_classes_1x8x8"]["wrn_16_2"]: wide_resnet(
            16, 2, 10, input_shape=_SMALL
        ),
        _COUNTS["digits_10_classes_1x8x8"]["wrn_16_1"]: wide_resnet(
            16, 1, 10, input_shape=_SMALL
        ),
        _COUNTS["digits_10_classes_1x8x8"]["resnet8"]: small_resnet(
            8, (16, 16, 32, 64), 10, input_shape=_SMALL
        ),
    }
    for expected, model in known.items():
        assert _count(model) == expected, model.name


def _randomised(model):
    rng = np.random.default_rng(0)
    for weight in model.weights:
        values = rng.normal(size=weight.shape) * 0.3
        weight.assign(np.abs(values) + 0.5 if "variance" in weight.path else values)
    return {layer.name: layer for layer in model.layers}


def _norm(x, layer):
    gain = layer.gamma / np.sqrt(layer.moving_variance + 1e-5)
    return (x - layer.moving_mean) * gain + layer.beta


def _conv(x, layer, strides=1):
    """Pads evenly, as PyTorch does."""
    size = layer.kernel.shape[0] // 2
    padded = np.pad(x, [(0, 0), (size, size), (size, size), (0, 0)])
    return tf.nn.conv2d(padded, layer.kernel, strides, "VALID").numpy()


def test_wide_blocks_by_hand():
    model = wide_resnet(10, 1, 3, input_shape=_SMALL)
    layers = _randomised(model)
    x = np.random.default_rng(1).normal(size=[2, 8, 8, 1]).astype("float32")
    found = keras.Model(model.input, [layers[n].output for n in layers])(x)
    found = dict(zip(layers, found, strict=True))
    h = expected = _conv(x, layers["stem"])
    for stage, strides in ((1, 1), (2, 2), (3, 2)):
        place = f"stage{stage}_block1"
        h = np.maximum(_norm(expected, layers[f"{place}_norm1"]), 0)
        shortcut = expected
        if stage > 1:
            # What is normalised goes into both.
            shortcut = _conv(h, layers[f"{place}_shortcut"], strides)
        h = _conv(h, layers[f"{place}_conv1"], strides)
        h = np.maximum(_norm(h, layers[f"{place}_norm2"]), 0)
        expected = _conv(h, layers[f"{place}_conv2"]) + shortcut
        np.testing.assert_allclose(found[f"stage{stage}"], expected, atol=1e-4)
        behind = "norm" if stage == 3 else f"stage{stage + 1}_block1_norm1"
        before = _norm(expected, layers[behind])
        np.testing.assert_allclose(found[f"stage{stage}_pre"], before, atol=1e-4)
    pooled = np.maximum(before, 0).mean(axis=(1, 2))
    np.testing.assert_allclose(found["pooled"], pooled, atol=1e-4)
    logits = pooled @ layers["logits"].kernel + layers["logits"].bias
    np.testing.assert_allclose(model(x), logits, atol=1e-4)


@pytest.mark.parametrize("bottleneck", [False, True])
def test_residual_blocks_by_hand(bottleneck):
    model = resnet((1, 1, 1, 1), 3, bottleneck=bottleneck, input_shape=_SMALL)
    layers = _randomised(model)
    x = np.random.default_rng(1).normal(size=[2, 8, 8, 1]).astype("float32")
    names = ["stem", "stage2_pre", "stage2"]
    found = keras.Model(model.input, [layers[n].output for n in names])(x)
    h = np.maximum(_norm(_conv(x, layers["conv"]), layers["norm"]), 0)
    np.testing.assert_allclose(found[0], h, atol=1e-4)
    for stage in (1, 2):
        place = f"stage{stage}_block1"
        steps = [1, stage, 1] if bottleneck else [stage, 1]
        inner = h
        for number, strides in enumerate(steps, start=1):
            inner = _conv(inner, layers[f"{place}_conv{number}"], strides)
            inner = _norm(inner, layers[f"{place}_norm{number}"])
            if number < len(steps):
                inner = np.maximum(inner, 0)
        if f"{place}_shortcut" in layers:
            h = _conv(h, layers[f"{place}_shortcut"], stage)
            h = _norm(h, layers[f"{place}_shortcut_norm"])
        before = inner + h
        h = np.maximum(before, 0)
    np.testing.assert_allclose(found[1], before, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[2], h, rtol=1e-3, atol=1e-3)


def test_channels_are_shuffled():
    model = shufflenet_v2(3, input_shape=_SMALL)
    layers = {layer.name: layer for layer in model.layers}
    names = ["stage1_block2_concat", "stage1_block2_shuffle"]
    outputs = [layers[name].output for name in names]
    before, after = keras.Model(model.input, outputs)(np.ones([1, *_SMALL], "float32"))
    before, after = before.numpy(), after.numpy()
    half = before.shape[-1] // 2
    np.testing.assert_array_equal(after[..., 0::2], before[..., :half])
    np.testing.assert_array_equal(after[..., 1::2], before[..., half:])


def test_the_last_activation_of_a_stage_comes_behind_its_pre():
    model = shufflenet_v2(3, input_shape=_SMALL)
    _randomised(model)
    names = ["stage2_pre", "stage2_block8_concat"]
    outputs = [model.get_layer(name).output for name in names]
    x = np.random.default_rng(1).normal(size=[2, *_SMALL]).astype("float32")
    before, after = (found.numpy() for found in keras.Model(model.input, outputs)(x))
    half = before.shape[-1] // 2
    np.testing.assert_array_equal(after[..., :half], before[..., :half])
    assert (before[..., half:] < 0).any()
    np.testing.assert_array_equal(after[..., half:], np.maximum(before[..., half:], 0))


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (lambda: wide_resnet(10, 1, 3, input_shape=_SMALL), (8, 4, 2)),
        (lambda: small_resnet(8, (4, 4, 8, 16), 3, input_shape=_SMALL), (8, 4, 2)),
        (lambda: shufflenet_v2(3, input_shape=_SMALL), (4, 2, 1)),
    ],
)
def test_features_have_names_and_files_bring_models_back(make, sizes, tmp_path):
    model = make()
    for stage, size in enumerate(sizes, start=1):
        assert model.get_layer(f"stage{stage}").output.shape[1:3] == (size, size)
        assert model.get_layer(f"stage{stage}_pre").output.shape[1:3] == (size, size)
    assert len(model.get_layer("pooled").output.shape) == 2
    assert model.get_layer("stem").output.shape[1:3] == (8, 8)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(1).normal(size=[2, *_SMALL]).astype("float32")
    np.testing.assert_array_equal(loaded(x), model(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wide_resnet(17, 1, 3),
            "`depth` must be 6 n \\+ 4, such as 10 or 16, found 17",
        ),
        (lambda: small_resnet(8, (4, 4), 3), "`widths` must be four"),
        (lambda: resnet((1, 1), 3), "`blocks` must be four numbers"),
        (lambda: resnet((1, 1, 1, 1), 3, stem="large"), "`stem` must be one of"),
        (lambda: shufflenet_v2(0), "`classes` must be an integer >= 1"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

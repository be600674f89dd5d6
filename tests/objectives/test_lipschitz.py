"""Lipschitz constants: numbers computed two ways, matrices of operators, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import lipschitz
from tests.references.distillation_reference import ORACLE

_ORACLE = ORACLE["lipschitz"]


_KERNEL = ((5.0 * np.arange(54) + 1) % 13 - 4).reshape(3, 3, 2, 3) / 2
_DEPTHWISE = ((5.0 * np.arange(36) + 2) % 7 - 3).reshape(3, 3, 4, 1) / 2
_STRIDED = ((7.0 * np.arange(72) + 3) % 11 - 5).reshape(3, 3, 2, 4) / 2


# === Numbers computed two ways ===


def test_kernels_of_dense_layers():
    kernel = np.array(_ORACLE["dense"]["kernel_in_out"])
    assert float(lipschitz.dense(kernel)) == _ORACLE["dense"]["norm1"]
    assert float(lipschitz.dense(kernel, norm="inf")) == _ORACLE["dense"]["norm_inf"]


def test_kernels_of_convolutions():
    expected = _ORACLE["conv"]
    assert float(lipschitz.conv(_KERNEL)) == expected["norm1_gouk"]
    assert float(lipschitz.conv(_KERNEL, norm="inf")) == expected["norm_inf_gouk"]
    authors = float(lipschitz.conv(_KERNEL, variant="authors"))
    assert authors == expected["sum_all_abs_SoTeacher_code"]
    expected = _ORACLE["depthwise"]
    assert float(lipschitz.depthwise(_DEPTHWISE)) == expected["norm1"]
    authors = float(lipschitz.depthwise(_DEPTHWISE, variant="authors"))
    assert authors == expected["sum_all_abs"]
    expected = _ORACLE["conv_exact_one_norm"]
    assert float(lipschitz.conv(_STRIDED)) == expected["stride1"]
    assert float(lipschitz.conv(_STRIDED, strides=2)) == expected["stride2"]
    found = float(lipschitz.conv(_STRIDED, strides=2, dilations=2))
    assert found == expected["stride2_dilation2"]
    found = float(lipschitz.conv(_STRIDED, groups=2))
    assert found == expected["groups2_stride1 (input has 4 channels)"]
    for strides in (1, 2, 3):
        found = float(lipschitz.conv(_STRIDED, strides=strides, norm="inf"))
        assert found == expected["inf_norm_any_stride"]


def test_batch_normalisation_and_sums():
    given = _ORACLE["batchnorm"]
    scale, variance = np.array(given["gamma"]), np.array(given["moving_var"])
    for epsilon, key in (
        (1e-5, "eps_1e_5"),
        (1e-3, "eps_1e_3_keras_default"),
        (1e-6, "eps_1e_6_gouk_repo"),
    ):
        found = lipschitz.batch_norm(scale, variance, epsilon=epsilon)
        assert float(found) == pytest.approx(given[key], abs=1e-10)
    rest = lipschitz.batch_norm(scale, variance, epsilon=1e-5)
    rest += lipschitz.dense(np.array(_ORACLE["dense"]["kernel_in_out"]))
    total = float(rest + lipschitz.conv(_KERNEL))
    assert total == pytest.approx(_ORACLE["total"]["gouk"])
    total = float(rest + lipschitz.conv(_KERNEL, variant="authors"))
    assert total == pytest.approx(_ORACLE["total"]["soteacher_code"])


# === Matrices of operators ===


def _matrix(run, shape):
    """Returns what a linear map of arrays makes of each basis vector, as rows."""
    size = int(np.prod(shape))
    basis = tf.reshape(tf.eye(size, dtype=tf.float64), [size, *shape])
    return np.abs(tf.reshape(run(basis), [size, -1]).numpy())


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("strides", "dilations"),
    [(1, 1), (2, 1), (3, 1), (1, 2), ((2, 1), 1), ((2, 3), 1)],
)
def test_norms_are_those_of_matrices(strides, dilations, groups):
    kernel = np.random.default_rng(0).normal(size=[3, 3, 2, 4])
    matrix = _matrix(
        lambda x: tf.nn.conv2d(x, kernel, strides, "SAME", dilations=dilations),
        [9, 9, 2 * groups],
    )
    options = {"strides": strides, "dilations": dilations, "groups": groups}
    one = float(lipschitz.conv(kernel, **options))
    assert one == pytest.approx(matrix.sum(axis=1).max())
    most = float(lipschitz.conv(kernel, norm="inf", **options))
    assert most == pytest.approx(matrix.sum(axis=0).max())
    assert one <= float(lipschitz.conv(kernel, variant="gouk", **options)) + 1e-12


def test_strides_with_dilations_are_those_of_matrices():
    # TensorFlow has no such convolution: every second output of one.
    kernel = np.random.default_rng(1).normal(size=[3, 3, 2, 2])
    matrix = _matrix(
        lambda x: tf.nn.conv2d(x, kernel, 1, "SAME", dilations=2)[:, ::2, ::2],
        [11, 11, 2],
    )
    found = float(lipschitz.conv(kernel, strides=2, dilations=2))
    assert found == pytest.approx(matrix.sum(axis=1).max())


@pytest.mark.parametrize("stride", [1, 2])
def test_norms_of_depthwise_and_of_lines_are_those_of_matrices(stride):
    rng = np.random.default_rng(2)
    kernel = rng.normal(size=[3, 3, 3, 2])
    matrix = _matrix(
        lambda x: tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME"),
        [7, 7, 3],
    )
    for norm, axis in (("one", 1), ("inf", 0)):
        found = float(lipschitz.depthwise(kernel, strides=stride, norm=norm))
        assert found == pytest.approx(matrix.sum(axis=axis).max())
    kernel = rng.normal(size=[4, 2, 3])
    matrix = _matrix(lambda x: tf.nn.conv1d(x, kernel, stride, "SAME"), [12, 2])
    found = float(lipschitz.conv(kernel, strides=stride))
    assert found == pytest.approx(matrix.sum(axis=1).max())


# === Gradients ===


def test_gradients_are_signs_of_the_largest_sum():
    kernel = tf.constant([[1.0, -2.0, 3.0], [0.5, 4.0, -6.0]])
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        found = lipschitz.dense(kernel)
    expected = [[0, 0, 0], [1, 1, -1]]
    np.testing.assert_array_equal(tape.gradient(found, kernel), expected)
    scale, variance = tf.constant([0.5, -2.0]), tf.constant([1.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch([scale, variance])
        found = lipschitz.batch_norm(scale, variance, epsilon=0.0)
    to_scale, to_variance = tape.gradient(found, [scale, variance])
    np.testing.assert_allclose(to_scale, [0, -0.5])
    assert to_variance is None
    with tf.GradientTape() as tape:
        kernel = tf.constant(_STRIDED)
        tape.watch(kernel)
        found = lipschitz.conv(kernel, strides=2)
    gradient = tape.gradient(found, kernel).numpy()
    # Signs of one input channel's taps of one class.
    assert np.count_nonzero(gradient.any(axis=(0, 1, 3))) == 1
    assert np.sum(gradient * _STRIDED) == pytest.approx(float(found))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtype_is_kept(dtype):
    for run in (lipschitz.conv, lipschitz.depthwise):
        assert run(tf.cast(_KERNEL, dtype)).dtype == dtype
    assert lipschitz.dense(tf.ones([2, 2], dtype)).dtype == dtype


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lipschitz.dense(np.ones(3)), ValueError, "must have 2 known axes"),
        (
            lambda: lipschitz.dense(np.ones([2, 2], int)),
            TypeError,
            "dense: `kernel` must be floating point, found int64",
        ),
        (
            lambda: lipschitz.dense(np.ones([2, 2]), norm="two"),
            ValueError,
            "`norm` must be one of one, inf; found 'two'",
        ),
        (
            lambda: lipschitz.conv(np.ones([2, 2])),
            ValueError,
            "one to three axes of taps and two of channels, found 2 axes",
        ),
        (
            lambda: lipschitz.conv(_KERNEL, strides=(1, 2, 3)),
            ValueError,
            r"`strides` must be one number or 2, found \(1, 2, 3\)",
        ),
        (
            lambda: lipschitz.conv(_KERNEL, groups=2),
            ValueError,
            "`groups` must divide the 3 outputs, found 2",
        ),
        (
            lambda: lipschitz.conv(_KERNEL, variant="thesis"),
            ValueError,
            "`variant` must be one of exact, gouk, authors",
        ),
        (
            lambda: lipschitz.conv(_KERNEL, dilations=0),
            ValueError,
            "`dilations` must be an integer >= 1, found 0",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()

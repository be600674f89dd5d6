"""One seed for each part."""

from __future__ import annotations

import zlib

import keras
import numpy as np

from rlm_tf.nested_config import made_objects
from rlm_tf.seeds import Seeds


def test_seeds_are_those_of_a_generator_of_numpy():
    """In the order of the questions, whether one by one or several at once."""
    expected = np.random.default_rng(3).integers(2**31, size=6)
    seeds = Seeds(3)
    found = [seeds.next(), *seeds.take(3), seeds.next()]
    found.append(int(seeds.initializer(keras.initializers.RandomNormal()).seed))
    np.testing.assert_array_equal(found, expected)
    assert all(type(seed) is int for seed in found)


def test_classes_begin_with_other_seeds():
    class Owner:
        pass

    found = Seeds(3, Owner()).take(2)
    expected = np.random.default_rng([zlib.crc32(b"Owner"), 3]).integers(2**31, size=2)
    np.testing.assert_array_equal(found, expected)
    assert found != Seeds(3).take(2)


def test_an_initialiser_without_a_seed_is_copied():
    assert isinstance(
        Seeds(1).initializer(keras.initializers.Zeros()), keras.initializers.Zeros
    )


def test_objects_come_back_at_any_depth():
    layer = keras.saving.serialize_keras_object(keras.layers.Dense(3, name="a"))
    config = {
        "pairs": [(layer, 0.5), [layer, None]],
        "parts": {"first": layer},
        "input": {"shape": [None, 3], "dtype": "int32"},
        "number": 2,
    }
    made = made_objects(config)
    found = [made["pairs"][0][0], made["pairs"][1][0], made["parts"]["first"]]
    assert all(
        isinstance(part, keras.layers.Dense) and part.units == 3 for part in found
    )
    assert made["pairs"][0][1] == 0.5 and made["pairs"][1][1] is None
    assert made["input"] == config["input"] and made["number"] == 2
    assert isinstance(made["pairs"][0], tuple)

"""Tests that fitted n-gram models survive files, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.restricted import KneserNey, read_arpa, write_arpa
from tests.restricted.wrapper import Wrapper, round_trip

TOKENS = np.random.default_rng(1).zipf(1.5, 400) % 12
ARGUMENTS = [
    {},
    {"order": np.int64(2)},
    {"order": 3, "smoothing": "absolute", "floor": 0.1},
    {"order": 4, "smoothing": "add_k", "add_k": 0.25},
    {"order": 1, "smoothing": "maximum_likelihood"},
]


def _fitted(arguments):
    model = KneserNey(**arguments).fit(TOKENS, 13)
    contexts = np.random.default_rng(2).integers(0, 13, [40, model.context_length])
    return model, contexts


def _assert_same(one, two, contexts):
    np.testing.assert_array_equal(one.probs(contexts), two.probs(contexts))
    np.testing.assert_array_equal(one.log_probs(contexts), two.log_probs(contexts))
    np.testing.assert_array_equal(one.score(TOKENS), two.score(TOKENS))
    assert one.get_config() == two.get_config()
    assert one.vocabulary_size == two.vocabulary_size


@pytest.mark.parametrize("arguments", ARGUMENTS)
class TestRoundTrips:
    def test_keras_file_of_a_wrapper(self, arguments, tmp_path):
        model, contexts = _fitted(arguments)
        wrapper = Wrapper(model)
        expected = wrapper(tf.constant(contexts))
        once = round_trip(wrapper, tmp_path / "once.keras")
        twice = round_trip(once, tmp_path / "twice.keras")
        np.testing.assert_array_equal(twice(tf.constant(contexts)), expected)
        _assert_same(twice.restricted_model, model, contexts)
        assert twice.restricted_model.discounts == model.discounts
        assert len(twice.trainable_weights) == 1

    def test_file_of_its_own(self, arguments, tmp_path):
        model, contexts = _fitted(arguments)
        model.save(tmp_path / "model.npz")
        loaded = KneserNey.load(tmp_path / "model.npz")
        _assert_same(loaded, model, contexts)
        assert loaded.discounts == model.discounts
        assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]


def test_arpa_model_in_a_wrapper(tmp_path):
    model, contexts = _fitted({"order": 3})
    write_arpa(model, [f"w{i}" for i in range(13)], tmp_path / "model.arpa")
    read = read_arpa(tmp_path / "model.arpa", [f"w{i}" for i in range(13)], floor=0.125)
    loaded = round_trip(Wrapper(read), tmp_path / "model.keras").restricted_model
    _assert_same(loaded, read, contexts)
    read.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match=r"KneserNey\.save wrote; found one of Arpa"):
        KneserNey.load(tmp_path / "model.npz")


class TestErrors:
    @settings(max_examples=40, deadline=None)
    @given(part=st.floats(0.0, 1.0, exclude_max=True))
    def test_truncated_or_altered_file(self, part, tmp_path_factory):
        path = tmp_path_factory.mktemp("saved") / "model.npz"
        _fitted({})[0].save(path)
        whole = path.read_bytes()
        # A part and not a number of bytes: the archive's size differs by a byte or two.
        path.write_bytes(whole[: int(len(whole) * part)])
        with pytest.raises(
            ValueError, match=r"model\.npz: expected a file that Kneser"
        ):
            KneserNey.load(path)

    @settings(max_examples=40, deadline=None)
    @given(content=st.binary(max_size=200))
    def test_foreign_file(self, content, tmp_path_factory):
        path = tmp_path_factory.mktemp("saved") / "model.npz"
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"model\.npz: expected a file that Kneser"
        ):
            KneserNey.load(path)

    def test_foreign_archives(self, tmp_path):
        np.savez(tmp_path / "other.npz", a=np.zeros(3))
        np.save(tmp_path / "array.npy", np.zeros(3))
        for name in ("other.npz", "array.npy"):
            with pytest.raises(ValueError, match="damaged or foreign"):
                KneserNey.load(tmp_path / name)

    def test_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            KneserNey.load(tmp_path / "model.npz")
        with pytest.raises(FileNotFoundError, match="no directory"):
            _fitted({})[0].save(tmp_path / "absent" / "model.npz")
        with pytest.raises(ValueError, match="no tables yet"):
            KneserNey().save(tmp_path / "model.npz")
        assert not list(tmp_path.iterdir())

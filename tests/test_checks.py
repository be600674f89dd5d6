"""Shape checks: what passes, and what the messages name."""

from __future__ import annotations

import pytest
import tensorflow as tf

from rlm_tf import checks
from rlm_tf.checks import check_floating, check_shapes


def test_equal_names_and_numbers_pass():
    check_shapes(
        "f",
        a=(tf.zeros([2, 3, 5]), "... V"),
        b=(tf.zeros([2, 3, 1]), "... 1"),
        c=(tf.zeros([5]), "V"),
    )


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        (
            {"a": ([2, 3], "B T"), "b": ([2, 4], "B T")},
            "axis T of `b` is 4, expected 3",
        ),
        ({"a": ([2, 3], "B")}, r"`a` must have axes \[B\], found shape \[2, 3\]"),
        ({"a": ([2, 3], "B 1")}, "axis 1 of `a` is 3, expected 1"),
        ({"a": ([2, 3], "... V"), "b": ([4, 3], "... V")}, "leading axes of `b`"),
        ({"a": ([], "... V")}, r"`a` must have axes \[... V\]"),
    ],
)
def test_what_does_not_fit_is_named(specification, message):
    tensors = {name: (tf.zeros(s), axes) for name, (s, axes) in specification.items()}
    with pytest.raises(ValueError, match=f"^f: .*{message}|^f: {message}"):
        check_shapes("f", **tensors)


def test_unknown_sizes_pass_while_a_graph_is_traced():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec(None)])
    def traced(a, b):
        check_shapes("f", a=(a, "B V"), b=(b, "B"))
        return tf.reduce_sum(a)

    assert float(traced(tf.ones([2, 3]), tf.ones([7]))) == 6.0


def test_integers_are_refused_where_floats_are_needed():
    with pytest.raises(TypeError, match="f: `a` must be floating point, found int32"):
        check_floating("f", a=tf.zeros([1], tf.int32))


def test_checks_of_a_running_graph_fail_in_one_line():
    def check(value):
        with tf.control_dependencies(
            checks.check_running(value < 3, "f: x < 3", value)
        ):
            return tf.identity(value)

    assert check(tf.constant(2)) == 2
    with pytest.raises(ValueError, match=r"^f: x < 3, found 4\.$"):
        check(tf.constant(4))
    in_graph = tf.function(check)
    with checks.plain_errors():
        assert in_graph(tf.constant(1)) == 1
    with (
        pytest.raises(ValueError, match=r"^f: x < 3, found 5\.$"),
        checks.plain_errors(),
    ):
        in_graph(tf.constant(5))
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="something else"),
        checks.plain_errors(),
    ):

        @tf.function
        def fail():
            tf.debugging.Assert(False, ["something else"])

        fail()

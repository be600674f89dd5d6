"""Strategies by name; `tests/training/test_kill.py` trains on two logical CPUs."""

from __future__ import annotations

import pytest
import tensorflow as tf

from rlm_tf.distribution import logical_cpus, strategy


def test_names():
    assert strategy() is tf.distribute.get_strategy()
    assert isinstance(strategy("one_device"), tf.distribute.OneDeviceStrategy)
    mirrored = strategy("mirrored", ["CPU:0"])
    assert isinstance(mirrored, tf.distribute.MirroredStrategy)
    assert mirrored.num_replicas_in_sync == 1
    assert strategy("mirrored", ["CPU:0"]) is mirrored


@pytest.mark.parametrize("name", ["multi_worker_mirrored", "parameter_server", "tpu"])
def test_what_does_not_work_says_why(name):
    with pytest.raises(ValueError, match=f"`{name}` is not offered: .*mirrored"):
        strategy(name)


def test_errors():
    with pytest.raises(ValueError, match="one of default, one_device, mirrored"):
        strategy("Mirrored")
    with pytest.raises(ValueError, match=r"`devices` must be some of .*CPU:0"):
        strategy("mirrored", ["CPU:77"])
    with pytest.raises(ValueError, match="`devices` must be some of"):
        strategy("one_device", [])
    with pytest.raises(ValueError, match="takes no `devices`"):
        strategy("default", ["CPU:0"])


def test_logical_cpus_after_tensorflow_started():
    count = len(tf.config.list_logical_devices("CPU"))
    assert logical_cpus(count) == [f"CPU:{index}" for index in range(count)]
    with pytest.raises(RuntimeError, match="call it before any operation"):
        logical_cpus(count + 1)
    with pytest.raises(ValueError, match="`count` must be an integer >= 1"):
        logical_cpus(0)

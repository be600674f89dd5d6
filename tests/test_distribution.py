"""Strategies by name; `tests/training/test_kill.py` trains on two logical CPUs."""

from __future__ import annotations

import json

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


def test_what_does_not_work_says_why():
    with pytest.raises(ValueError, match="`parameter_server` is not offered"):
        strategy("parameter_server")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not set"),
        ("{", "it reads '{'"),
        ('{"task": 1}', "KeyError"),
        ({"cluster": {"worker": ["a:1"], "ps": ["a:2"]}}, r"found \['ps', 'worker'\]"),
        ({"cluster": {"worker": "a:1"}}, "a list of addresses, found 'a:1'"),
        ({"cluster": {"worker": ["a:1"]}}, r"must be in \[0, 1\), found 1"),
    ],
)
def test_clusters_that_are_none(text, problem, monkeypatch):
    if isinstance(text, dict):
        text = json.dumps(text | {"task": {"type": "worker", "index": 1}})
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=rf"TF_CONFIG of each process, .*{problem}"):
        strategy("multi_worker_mirrored")


def test_workers_are_asked_for_too_late(monkeypatch):
    tf.constant(1) + 1
    cluster = {"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster | {"task": task}))
    with pytest.raises(RuntimeError, match="at the start of the program"):
        strategy("multi_worker_mirrored")


@pytest.mark.parametrize("name", ["local", "grpc://127.0.0.1:1", "grpc://nobody"])
def test_a_tpu_that_is_not_there(name):
    with pytest.raises(ValueError, match=f"there is no TPU '{name}' that this Tens"):
        strategy("tpu", tpu=name)


def test_errors():
    with pytest.raises(ValueError, match="one of default, one_device, mirrored"):
        strategy("Mirrored")
    with pytest.raises(ValueError, match=r"`devices` must be some of .*CPU:0"):
        strategy("mirrored", ["CPU:77"])
    with pytest.raises(ValueError, match="`devices` must be some of"):
        strategy("one_device", [])
    with pytest.raises(ValueError, match="takes no `devices`"):
        strategy("default", ["CPU:0"])
    with pytest.raises(ValueError, match=r"needs a TPU: `tpu=` .* must be its name"):
        strategy("tpu")
    with pytest.raises(ValueError, match="found 'mirrored' and tpu='local'"):
        strategy("mirrored", tpu="local")


def test_logical_cpus_after_tensorflow_started():
    count = len(tf.config.list_logical_devices("CPU"))
    assert logical_cpus(count) == [f"CPU:{index}" for index in range(count)]
    with pytest.raises(RuntimeError, match="call it before any operation"):
        logical_cpus(count + 1)
    with pytest.raises(ValueError, match="`count` must be an integer >= 1"):
        logical_cpus(0)

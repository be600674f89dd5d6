"""Distribution strategies by name."""

from __future__ import annotations

import functools
import json
import logging
import os
import socket
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_integer

STRATEGIES = ("default", "one_device", "mirrored", "multi_worker_mirrored", "tpu")
_UNSUPPORTED = {
    "parameter_server": "Keras' fit() takes no plain dataset under "
    "ParameterServerStrategy in this version",
}
_CLUSTER = (
    '{"cluster": {"worker": ["HOST:PORT", "HOST:PORT"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
_LOGGER = logging.getLogger(__name__)


def strategy(
    name: str = "default",
    devices: Sequence[str] | None = None,
    *,
    tpu: str | None = None,
) -> tf.distribute.Strategy:
    """Returns the strategy of a name; create and compile the model in its `scope()`.

    - `"default"`: no distribution, TensorFlow places the operations.
    - `"one_device"`: everything on one device, by default the first GPU, else the CPU.
    - `"mirrored"`: a copy of the model on each device of this machine, by default on
      all GPUs, else on all logical CPUs. `fit()` excludes `jit_compile=True`,
      `steps_per_execution > 1` and gradient accumulation with it. Asked again for the
      same devices it is the same object: collectives of two would disturb each other.
    - `"multi_worker_mirrored"`: a copy on each device of several processes, which the
      environment variable `TF_CONFIG` names; the first worker is the chief, and this
      waits until all are there. Each runs the same program, callbacks included, and
      gets its share of every batch; seeds have to be given, so that all see the same
      data. Only `rlm_tf.models` train so: Keras' own `fit()` fails in this version.
      Ask for it before any other operation of TensorFlow.
    - `"tpu"`: a copy on each core of a TPU, where TensorFlow has its kernels.

    Args:
        name: One of `STRATEGIES`.
        devices: Names such as `"GPU:0"`, for `one_device` and `mirrored`; None: see
            above.
        tpu: Name or address of the TPU; `"local"` on a TPU's own machine.

    Raises:
        ValueError: If the name is unknown or what it stands for does not work with
            `fit()`, a device does not exist, or the number of devices does not fit;
            if `TF_CONFIG` does not describe workers, or there is no such TPU.
        RuntimeError: If several workers are asked for too late.
    """
    if name in _UNSUPPORTED:
        raise ValueError(
            f"strategy: `{name}` is not offered: {_UNSUPPORTED[name]}. Choose one of "
            f"{', '.join(STRATEGIES)}."
        )
    if name not in STRATEGIES:
        raise ValueError(
            f"strategy: `name` must be one of {', '.join(STRATEGIES)}, found {name!r}."
        )
    if name == "tpu" and tpu is None:
        raise ValueError(
            "strategy: the strategy `tpu` needs a TPU: `tpu=` (`--tpu` of a binary) "
            "must be its name or address, or 'local' on its own machine; found None."
        )
    if name != "tpu" and tpu is not None:
        raise ValueError(
            f"strategy: `tpu` names a TPU and goes with the strategy `tpu`, found "
            f"{name!r} and tpu={tpu!r}."
        )
    if devices is not None and name in ("default", "multi_worker_mirrored", "tpu"):
        raise ValueError(f"strategy: `{name}` takes no `devices`; use one_device.")
    if name == "multi_worker_mirrored":
        return _multi_worker()
    if tpu is not None:
        return _tpu(tpu)
    gpus, cpus = _names("GPU"), _names("CPU")
    if devices is not None:
        missing = [device for device in devices if device not in gpus + cpus]
        if missing or not devices:
            raise ValueError(
                f"strategy: `devices` must be some of {gpus + cpus}, found "
                f"{list(devices)}."
            )
    if name == "default":
        return tf.distribute.get_strategy()
    chosen = list(devices or gpus or cpus)
    if name == "mirrored":
        return _mirrored(tuple(chosen))
    if devices is not None and len(devices) != 1:
        raise ValueError(
            f"strategy: `one_device` needs one device, found {list(devices)}."
        )
    return tf.distribute.OneDeviceStrategy(chosen[0])


def logical_cpus(count: int) -> list[str]:
    """Splits the CPU into `count` logical devices, to try replicas without GPUs.

    Returns:
        The names of the devices.

    Raises:
        ValueError: If `count` is not positive.
        RuntimeError: If TensorFlow already runs with another number; call this first.
    """
    check_integer("logical_cpus", "count", count, 1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    configuration = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    try:
        tf.config.set_logical_device_configuration(cpu, configuration)
    except RuntimeError as error:
        if len(_names("CPU")) != count:
            raise RuntimeError(
                f"logical_cpus: TensorFlow already runs with {len(_names('CPU'))} "
                f"logical CPUs, {count} are wanted; call it before any operation."
            ) from error
    return _names("CPU")


@functools.cache
def _mirrored(devices: tuple[str, ...]) -> tf.distribute.Strategy:
    return tf.distribute.MirroredStrategy(list(devices))


@functools.cache
def _multi_worker() -> tf.distribute.Strategy:
    workers = _workers_of(os.environ.get("TF_CONFIG", ""))
    if workers > 1:
        _LOGGER.info("Waiting until all %d workers are there.", workers)
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        if "startup" not in str(error):
            raise
        raise RuntimeError(
            "strategy: ask for `multi_worker_mirrored` at the start of the program, "
            "before any other operation of TensorFlow."
        ) from None
    except tf.errors.OpError as error:
        raise ValueError(
            f"strategy: the workers of TF_CONFIG do not meet: {error.message}. Are "
            "their addresses right, and the ports free?"
        ) from None


def _workers_of(text: str) -> int:
    """Returns how many workers `TF_CONFIG` names.

    Raises:
        ValueError: If it does not describe workers, of which this is one.
    """
    problem = _problem_of(text)
    if problem:
        raise ValueError(
            "strategy: `multi_worker_mirrored` needs the environment variable "
            f"TF_CONFIG of each process, such as {_CLUSTER}; {problem}."
        )
    return len(json.loads(text)["cluster"]["worker"])


def _problem_of(text: str) -> str:
    """Returns what is wrong with `TF_CONFIG`, nothing if all is well."""
    if not text:
        return "it is not set"
    try:
        config: Any = json.loads(text)
        workers, task = config["cluster"]["worker"], config["task"]
        jobs, index = sorted(config["cluster"]), task["index"]
        if jobs != ["worker"] or task["type"] != "worker":
            return f"all tasks must be workers, found {jobs} and {task['type']!r}"
        if not isinstance(workers, list) or not workers:
            return f"`worker` must be a list of addresses, found {workers!r}"
        if not isinstance(index, int) or not 0 <= index < len(workers):
            return f"`index` must be in [0, {len(workers)}), found {index!r}"
    except (ValueError, KeyError, TypeError) as error:
        return f"it reads {text[:80]!r} ({error!r})"
    return ""


@functools.cache
def _tpu(name: str) -> tf.distribute.Strategy:
    try:
        if name.startswith("grpc://"):
            # TensorFlow would wait for ever.
            host, _, port = name.removeprefix("grpc://").rpartition(":")
            socket.create_connection((host, int(port)), timeout=10).close()
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(name)
        return tf.distribute.TPUStrategy(resolver)
    except Exception as error:  # Of many kinds: no name, no address, no kernels.
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"strategy: there is no TPU {name!r} that this TensorFlow can use "
            f"({type(error).__name__}: {reason[:200]})."
        ) from None


def _names(kind: str) -> list[str]:
    devices = tf.config.list_logical_devices(kind)
    return [f"{kind}:{index}" for index in range(len(devices))]

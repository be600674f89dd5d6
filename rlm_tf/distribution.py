"""Distribution strategies by name."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import tensorflow as tf

from rlm_tf.checks import check_integer

STRATEGIES = ("default", "one_device", "mirrored")
_UNSUPPORTED = {
    "multi_worker_mirrored": "Keras' fit() fails with MultiWorkerMirroredStrategy in "
    "this version",
    "parameter_server": "Keras' fit() takes no plain dataset under "
    "ParameterServerStrategy in this version",
    "tpu": "the wheels of TensorFlow for CPU and GPU have no TPU kernels",
}


def strategy(
    name: str = "default", devices: Sequence[str] | None = None
) -> tf.distribute.Strategy:
    """Returns the strategy of a name; create and compile the model in its `scope()`.

    - `"default"`: no distribution, TensorFlow places the operations.
    - `"one_device"`: everything on one device, by default the first GPU, else the CPU.
    - `"mirrored"`: a copy of the model on each device of this machine, by default on
      all GPUs, else on all logical CPUs. `fit()` excludes `jit_compile=True`,
      `steps_per_execution > 1` and gradient accumulation with it. Asked again for the
      same devices it is the same object: collectives of two would disturb each other.

    Args:
        name: One of `STRATEGIES`.
        devices: Names such as `"GPU:0"`; None: see above.

    Raises:
        ValueError: If the name is unknown or what it stands for does not work with
            `fit()`, a device does not exist, or the number of devices does not fit.
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
    gpus, cpus = _names("GPU"), _names("CPU")
    if devices is not None:
        missing = [device for device in devices if device not in gpus + cpus]
        if missing or not devices:
            raise ValueError(
                f"strategy: `devices` must be some of {gpus + cpus}, found "
                f"{list(devices)}."
            )
    if name == "default":
        if devices is not None:
            raise ValueError("strategy: `default` takes no `devices`; use one_device.")
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


def _names(kind: str) -> list[str]:
    devices = tf.config.list_logical_devices(kind)
    return [f"{kind}:{index}" for index in range(len(devices))]

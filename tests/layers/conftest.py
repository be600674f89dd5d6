"""Two logical CPUs, so that distribution can be tested on one machine."""

from __future__ import annotations

import tensorflow as tf

CPUS = tf.config.list_physical_devices("CPU")
if len(tf.config.get_logical_device_configuration(CPUS[0]) or []) < 2:
    tf.config.set_logical_device_configuration(
        CPUS[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )

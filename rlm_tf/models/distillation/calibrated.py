"""A teacher whose logits are divided by the temperature that calibrates it."""

from __future__ import annotations

import math

import keras

from rlm_tf.checks import check_range

_LEAST = 1e-6


def calibrated_teacher(model: keras.Model, temperature: float) -> keras.Model:
    """Returns a classifier whose logits are another's, divided by a temperature.

    Of a functional model it is one of the same layers, whose features strategies find;
    weights are shared.

    Args:
        model: A classifier; outputs are logits.
        temperature: T, such as that of `rlm_tf.evaluation.fit_temperature` on examples
            that the model was not trained on.

    Raises:
        ValueError: If the temperature is not positive.
    """
    check_range("calibrated_teacher", _LEAST, math.inf, temperature=temperature)
    scale = keras.layers.Rescaling(1.0 / temperature, name="calibration")
    outputs = getattr(model, "outputs", None)
    if isinstance(model, keras.Sequential) or not outputs:
        return keras.Sequential([model, scale])
    return keras.Model(model.input, scale(outputs[0]))

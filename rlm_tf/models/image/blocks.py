"""Layers that networks for images are made of."""

from __future__ import annotations

from typing import Any

import keras


def conv(
    x: Any, name: str, channels: int, size: int, strides: int = 1, *, by: str = "all"
) -> Any:
    """Returns a convolution without bias, padded as PyTorch's: evenly.

    Args:
        x: `[B, H, W, C]`.
        name: Of the layer.
        channels: Of the result.
        size: Of the kernel, odd.
        strides: Both.
        by: "all" channels, or "channel": each on its own.
    """
    if size > 1 and strides > 1:
        # "same" of TensorFlow pads the end alone where sizes are even.
        x = keras.layers.ZeroPadding2D(size // 2, name=f"{name}_pad")(x)
        padding = "valid"
    else:
        padding = "same"
    # By what leaves the layer, as is usual for these networks.
    start = keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")
    if by == "channel":
        return keras.layers.DepthwiseConv2D(
            size,
            strides,
            padding,
            use_bias=False,
            depthwise_initializer=start,
            name=name,
        )(x)
    return keras.layers.Conv2D(
        channels,
        size,
        strides,
        padding,
        use_bias=False,
        kernel_initializer=start,
        name=name,
    )(x)


def norm(x: Any, name: str) -> Any:
    """Returns batch normalisation with PyTorch's epsilon and momentum."""
    return keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=name)(x)


def relu(x: Any, name: str) -> Any:
    """Returns the positive part."""
    return keras.layers.ReLU(name=name)(x)


def named(x: Any, name: str) -> Any:
    """Returns what it is given, under a name."""
    return keras.layers.Identity(name=name)(x)


def classified(inputs: Any, x: Any, classes: int, name: str) -> keras.Model:
    """Returns the model that ends with the mean over pixels, and logits."""
    pooled = keras.layers.GlobalAveragePooling2D(name="pooled")(x)
    logits = keras.layers.Dense(classes, name="logits")(pooled)
    return keras.Model(inputs, logits, name=name)

"""ShuffleNetV2 for small images."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.checks import check_integer
from rlm_tf.models.image.blocks import classified, conv, named, norm, relu
from rlm_tf.models.image.resnets import Shape

# Channels of the three stages of width 1, and blocks behind the first of each.
_STAGES = ((116, 3), (232, 7), (464, 3))
_STEM, _LAST = 24, 1024


def shufflenet_v2(classes: int, *, input_shape: Shape = (32, 32, 3)) -> keras.Model:
    """Returns ShuffleNetV2 of width 1 (Ma et al. 2018), in its form for small images.

    The stem is a 1 x 1 convolution without pooling; each stage halves the image. The
    layers `stage1_pre`, ... have what there is before the last activation of a stage.

    Args:
        classes: K.
        input_shape: `[H, W, C]`, H and W at least 8.

    Raises:
        ValueError: If `classes` is not positive.
    """
    check_integer("shufflenet_v2", "classes", classes, 1)
    inputs = keras.Input(tuple(input_shape))
    x = relu(norm(conv(inputs, "conv", _STEM, 1), "norm"), "stem")
    for stage, (channels, blocks) in enumerate(_STAGES, start=1):
        x = _halving(x, f"stage{stage}_block1", channels)
        for block in range(2, blocks + 2):
            pre = f"stage{stage}_pre" if block == blocks + 1 else None
            x = _block(x, f"stage{stage}_block{block}", channels, pre)
        x = named(x, f"stage{stage}")
    x = relu(norm(conv(x, "last_conv", _LAST, 1), "last_norm"), "last_relu")
    return classified(inputs, x, classes, "shufflenet_v2")


def _block(x: Any, place: str, channels: int, pre: str | None) -> Any:
    """Returns a block whose first half of channels stays as it is.

    Args:
        x: Features.
        place: Of its layers.
        channels: Of the features.
        pre: Name of what there is before the last activation, both halves one behind
            the other; None: it has none.
    """
    kept, inner = keras.ops.split(x, 2, axis=-1)
    inner = _before_activation(inner, place, channels // 2, 1)
    if pre is not None:
        both = keras.layers.Concatenate(name=pre)([kept, inner])
        kept, inner = keras.ops.split(both, 2, axis=-1)
    return _shuffled([kept, relu(inner, f"{place}_relu2")], place)


def _halving(x: Any, place: str, channels: int) -> Any:
    """Returns a block that halves the image, both branches of all channels."""
    side = conv(x, f"{place}_side_depthwise", 0, 3, 2, by="channel")
    side = norm(side, f"{place}_side_norm1")
    side = conv(side, f"{place}_side_conv", channels // 2, 1)
    side = relu(norm(side, f"{place}_side_norm2"), f"{place}_side_relu")
    return _shuffled([side, _branch(x, place, channels // 2, 2)], place)


def _branch(x: Any, place: str, channels: int, strides: int) -> Any:
    x = _before_activation(x, place, channels, strides)
    return relu(x, f"{place}_relu2")


def _before_activation(x: Any, place: str, channels: int, strides: int) -> Any:
    x = conv(x, f"{place}_conv1", channels, 1)
    x = relu(norm(x, f"{place}_norm1"), f"{place}_relu1")
    x = conv(x, f"{place}_depthwise", 0, 3, strides, by="channel")
    x = norm(x, f"{place}_norm2")
    return norm(conv(x, f"{place}_conv2", channels, 1), f"{place}_norm3")


def _shuffled(branches: list[Any], place: str) -> Any:
    """Returns the channels of both branches by turns."""
    x = keras.layers.Concatenate(name=f"{place}_concat")(branches)
    high, wide, channels = x.shape[1:]
    x = keras.layers.Reshape((high, wide, 2, channels // 2), name=f"{place}_split")(x)
    x = keras.layers.Permute((1, 2, 4, 3), name=f"{place}_turn")(x)
    return keras.layers.Reshape((high, wide, channels), name=f"{place}_shuffle")(x)

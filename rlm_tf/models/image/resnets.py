"""Residual networks: wide ones, those for small images, and the large ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import keras

from rlm_tf.checks import check_integer, check_option
from rlm_tf.models.image.blocks import classified, conv, named, norm, relu

Shape = Sequence[int | None]


def wide_resnet(
    depth: int, widen: int, classes: int, *, input_shape: Shape = (32, 32, 3)
) -> keras.Model:
    """Returns a wide residual network (Zagoruyko and Komodakis 2016), WRN-depth-widen.

    Normalisation and activation come first in each block; where channels or sizes
    change, they come before the 1 x 1 convolution of the shortcut, too. No dropout.
    `stage1` to `stage3` are what blocks add up to; `stage1_pre` to `stage3_pre` the
    same normalised, before the activation that follows.

    Args:
        depth: 6 n + 4: n blocks a stage.
        widen: Times 16, 32 and 64 channels.
        classes: K.
        input_shape: `[H, W, C]`.

    Raises:
        ValueError: If a number is not positive, or there is no such depth.
    """
    name = "wide_resnet"
    blocks = _blocks(name, depth, 4)
    check_integer(name, "widen", widen, 1)
    check_integer(name, "classes", classes, 1)
    inputs = keras.Input(tuple(input_shape))
    x = conv(inputs, "stem", 16, 3)
    for stage, width in enumerate((16, 32, 64), start=1):
        for block in range(1, blocks + 1):
            strides = 2 if stage > 1 and block == 1 else 1
            place = f"stage{stage}_block{block}"
            if block == 1 and stage > 1:
                x = named(x, f"stage{stage - 1}")
            x = _wide_block(x, place, width * widen, strides, stage, block)
    x = named(norm(named(x, "stage3"), "norm"), "stage3_pre")
    return classified(inputs, relu(x, "relu"), classes, f"wrn_{depth}_{widen}")


def _wide_block(
    x: Any, place: str, channels: int, strides: int, stage: int, block: int
) -> Any:
    first = norm(x, f"{place}_norm1")
    if block == 1 and stage > 1:
        first = named(first, f"stage{stage - 1}_pre")
    first = relu(first, f"{place}_relu1")
    changes = x.shape[-1] != channels or strides > 1
    shortcut = x
    if changes:
        shortcut = conv(first, f"{place}_shortcut", channels, 1, strides)
    inner = conv(first, f"{place}_conv1", channels, 3, strides)
    inner = relu(norm(inner, f"{place}_norm2"), f"{place}_relu2")
    inner = conv(inner, f"{place}_conv2", channels, 3)
    return keras.layers.Add(name=f"{place}_add")([inner, shortcut])


def small_resnet(
    depth: int,
    widths: Sequence[int],
    classes: int,
    *,
    input_shape: Shape = (32, 32, 3),
) -> keras.Model:
    """Returns a residual network for small images (He et al. 2016), ResNet8 .. 110.

    ResNet20 has widths (16, 16, 32, 64), ResNet32x4 (32, 64, 128, 256).

    Args:
        depth: 6 n + 2: n blocks a stage.
        widths: Channels of the stem and of three stages.
        classes: K.
        input_shape: `[H, W, C]`.

    Raises:
        ValueError: If a number is not positive, or there is no such depth.
    """
    name = "small_resnet"
    blocks = _blocks(name, depth, 2)
    if len(widths) != 4:
        raise ValueError(
            f"{name}: `widths` must be four, of the stem and of three stages, found "
            f"{tuple(widths)}."
        )
    for width in widths:
        check_integer(name, "widths", width, 1)
    check_integer(name, "classes", classes, 1)
    inputs = keras.Input(tuple(input_shape))
    x = relu(norm(conv(inputs, "conv", widths[0], 3), "norm"), "stem")
    for stage, width in enumerate(widths[1:], start=1):
        x = _stage(x, stage, blocks, width, 1 if stage == 1 else 2, bottleneck=False)
    return classified(inputs, x, classes, f"resnet{depth}")


def resnet(
    blocks: Sequence[int],
    classes: int,
    *,
    bottleneck: bool = False,
    stem: Literal["cifar", "imagenet"] = "cifar",
    input_shape: Shape = (32, 32, 3),
) -> keras.Model:
    """Returns a residual network of four stages: ResNet18, 34, 50, 152.

    Args:
        blocks: Of each stage: (2, 2, 2, 2) is ResNet18, (3, 4, 6, 3) ResNet34 and with
            bottlenecks ResNet50, (3, 8, 36, 3) with bottlenecks ResNet152.
        classes: K.
        bottleneck: Blocks of 1 x 1, 3 x 3 and 1 x 1 convolutions, four times as wide
            outside.
        stem: "cifar": 3 x 3; "imagenet": 7 x 7 with stride 2, and maxima over 3 x 3.
        input_shape: `[H, W, C]`.

    Raises:
        ValueError: If a number is not positive, or `stem` is another.
    """
    name = "resnet"
    check_option(name, "stem", stem, ("cifar", "imagenet"))
    if len(blocks) != 4:
        raise ValueError(
            f"{name}: `blocks` must be four numbers, found {tuple(blocks)}."
        )
    for number in blocks:
        check_integer(name, "blocks", number, 1)
    check_integer(name, "classes", classes, 1)
    inputs = keras.Input(tuple(input_shape))
    if stem == "cifar":
        x = relu(norm(conv(inputs, "conv", 64, 3), "norm"), "stem")
    else:
        x = relu(norm(conv(inputs, "conv", 64, 7, 2), "norm"), "relu")
        x = keras.layers.ZeroPadding2D(1, name="pad")(x)
        x = keras.layers.MaxPooling2D(3, 2, name="stem")(x)
    for stage, number in enumerate(blocks, start=1):
        width, strides = 32 * 2**stage, 1 if stage == 1 else 2
        x = _stage(x, stage, number, width, strides, bottleneck=bottleneck)
    depth = 2 + (3 if bottleneck else 2) * sum(blocks)
    return classified(inputs, x, classes, f"resnet{depth}")


def _stage(
    x: Any, stage: int, blocks: int, width: int, strides: int, *, bottleneck: bool
) -> Any:
    """Returns blocks whose activation comes last."""
    for block in range(1, blocks + 1):
        place = f"stage{stage}_block{block}"
        x = _block(x, place, width, strides if block == 1 else 1, bottleneck)
        if block == blocks:
            return relu(named(x, f"stage{stage}_pre"), f"stage{stage}")
        x = relu(x, f"{place}_relu")
    return x


def _block(x: Any, place: str, width: int, strides: int, bottleneck: bool) -> Any:
    """Returns a block without its last activation."""
    # Kernel sizes, channels and strides of its convolutions.
    parts = [(3, width, strides), (3, width, 1)]
    if bottleneck:
        parts = [(1, width, 1), (3, width, strides), (1, 4 * width, 1)]
    inner, shortcut, channels = x, x, parts[-1][1]
    for number, (size, own, stride) in enumerate(parts, start=1):
        inner = conv(inner, f"{place}_conv{number}", own, size, stride)
        inner = norm(inner, f"{place}_norm{number}")
        if number < len(parts):
            inner = relu(inner, f"{place}_relu{number}")
    if x.shape[-1] != channels or strides > 1:
        shortcut = conv(x, f"{place}_shortcut", channels, 1, strides)
        shortcut = norm(shortcut, f"{place}_shortcut_norm")
    return keras.layers.Add(name=f"{place}_add")([inner, shortcut])


def _blocks(name: str, depth: int, rest: int) -> int:
    """Returns the blocks of a stage, of which there are three."""
    check_integer(name, "depth", depth, 6 + rest)
    if (depth - rest) % 6:
        raise ValueError(
            f"{name}: `depth` must be 6 n + {rest}, such as {6 + rest} or "
            f"{12 + rest}, found {depth}."
        )
    return (depth - rest) // 6

"""Lipschitz constants of the layers of any Keras model."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers import SoftmaxOutput, TokenEmbedding
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.models.distillation.layer_paths import layers_by_path
from rlm_tf.objectives import lipschitz
from rlm_tf.objectives.lipschitz import Norm, Variant

_CELLS = (
    HiddenStateCell,
    keras.layers.LSTMCell,
    keras.layers.GRUCell,
    keras.layers.SimpleRNNCell,
)
# What belongs to the weights of a layer without changing its constant.
_BIASES = ("bias", "beta")


def lipschitz_constants(
    model: keras.Layer,
    *,
    norm: Norm = "one",
    variant: Variant = "exact",
    ignore: Collection[str] = (),
) -> dict[str, tf.Tensor]:
    """Returns the operator norm of every layer that has weights, by path.

    Dense layers, convolutions (depthwise ones, too), batch normalisation with its
    moving variance, embeddings (of one-hot vectors), softmax outputs, and the kernels
    of recurrent cells, each on its own: `.../cell/kernel`, `.../cell/recurrent_kernel`.
    Biases do not matter; a layer that is used several times counts once. The gradient
    is that of `rlm_tf.objectives.lipschitz`.

    Args:
        model: Any Keras model that is built.
        norm: "one" or "inf".
        variant: Of convolutions.
        ignore: Paths of layers that are left out, with all that is inside.

    Returns:
        Scalars, float32, by path as `layers_by_path` has them.

    Raises:
        ValueError: If a layer has weights whose norm is not known, or a path to ignore
            does not exist.
    """
    name = "lipschitz_constants"
    layers = layers_by_path(model)
    unknown = sorted(set(ignore) - set(layers))
    if unknown:
        raise ValueError(
            f"{name}: `ignore` names {unknown[0]!r}, which is no layer of {model.name}."
        )
    if not model.built:
        raise ValueError(
            f"{name}: {model.name} is not built: call it on a batch first."
        )
    found: dict[str, tf.Tensor] = {}
    odd: dict[str, str] = {}
    for path, layer in (("", model), *layers.items()):
        if any(path == each or path.startswith(f"{each}/") for each in ignore):
            continue
        try:
            for part, constant in _constants(layer, norm, variant):
                place = "/".join(filter(None, (path, part)))
                found[place] = tf.cast(constant, tf.float32)
        except _UnknownLayerError as error:
            odd[path] = f"{type(layer).__name__}, with {error}"
    if odd:
        which = "; ".join(
            f"{path or 'the model'} ({what})" for path, what in odd.items()
        )
        more = [*ignore, *filter(None, odd)]
        raise ValueError(
            f"{name}: norms are not known of {which}. To leave them out: "
            f"ignore={more!r}."
        )
    return found


class _UnknownLayerError(Exception):
    """A layer has weights of which no norm is known."""


def _constants(
    layer: Any, norm: Norm, variant: Variant
) -> Iterator[tuple[str, tf.Tensor]]:
    """Gives the constants of a layer's own weights, with the name of the part."""
    weights = [*layer._trainable_variables, *layer._non_trainable_variables]
    names = [weight.name for weight in weights if weight.name not in _BIASES]
    if not names:
        return
    dense = functools.partial(lipschitz.dense, norm=norm)
    if isinstance(layer, _CELLS) and set(names) == {"kernel", "recurrent_kernel"}:
        yield "kernel", dense(_single(layer.kernel))
        yield "recurrent_kernel", dense(_single(layer.recurrent_kernel))
    elif isinstance(layer, keras.layers.BatchNormalization):
        variance = _single(layer.moving_variance)
        scale = _single(layer.gamma) if layer.scale else tf.ones_like(variance)
        yield "", lipschitz.batch_norm(scale, variance, epsilon=layer.epsilon)
    elif names == ["embeddings"] and isinstance(
        layer, keras.layers.Embedding | TokenEmbedding
    ):
        yield "", dense(_single(layer.embeddings))
    elif names == ["kernel"] and isinstance(layer, keras.layers.Dense):
        yield "", dense(_single(layer.kernel))
    elif names == ["kernel"] and isinstance(layer, SoftmaxOutput):
        # [V, D], as the embeddings that it may be tied to.
        yield "", dense(tf.transpose(_single(layer.kernel)))
    elif names == ["kernel"] and hasattr(layer, "dilation_rate"):
        options: dict[str, Any] = {
            "strides": layer.strides,
            "dilations": layer.dilation_rate,
            "norm": norm,
            "variant": variant,
        }
        if hasattr(layer, "depth_multiplier"):
            yield "", lipschitz.depthwise(_single(layer.kernel), **options)
        elif isinstance(
            layer, keras.layers.Conv1D | keras.layers.Conv2D | keras.layers.Conv3D
        ):
            options["groups"] = layer.groups
            yield "", lipschitz.conv(_single(layer.kernel), **options)
        else:
            raise _UnknownLayerError(", ".join(names))
    else:
        raise _UnknownLayerError(", ".join(names))


def _single(weight: Any) -> tf.Tensor:
    return tf.cast(tf.convert_to_tensor(weight), tf.float32)

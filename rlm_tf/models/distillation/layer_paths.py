"""The layers of any model, by the names that lead to them."""

from __future__ import annotations

import difflib
from collections import deque

import keras


def layers_by_path(model: keras.Layer) -> dict[str, keras.Layer]:
    """Returns all layers inside a model by path, such as `stage2/block1/add`.

    A path has the names of the models and layers that contain one another. A layer
    that is used in several places has the shortest of its paths; of layers of one name
    in one place the later ones have `_1`, `_2`, ... behind it.

    Args:
        model: Any Keras model, of nested and of subclassed models, too.
    """
    found: dict[str, keras.Layer] = {}
    seen = {id(model)}
    queue = deque([("", model)])
    while queue:
        place, outer = queue.popleft()
        for layer in outer._flatten_layers(recursive=False, include_self=False):
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            path = own = f"{place}{layer.name}"
            number = 0
            while path in found:
                number += 1
                path = f"{own}_{number}"
            found[path] = layer
            queue.append((f"{path}/", layer))
    return found


def layer_at(function: str, model: keras.Layer, path: str) -> keras.Layer:
    """Returns the layer at a path.

    Args:
        function: Its name begins the message.
        model: The model.
        path: As in `layers_by_path`.

    Raises:
        ValueError: If there is none; names the nearest.
    """
    layers = layers_by_path(model)
    if path not in layers:
        near = difflib.get_close_matches(path, layers, n=3, cutoff=0.3)
        known = ", ".join(near or list(layers)[:5])
        raise ValueError(
            f"{function}: {model.name} has no layer {path!r}; the nearest: {known}."
        )
    return layers[path]

"""A smaller model of the same kind."""

from __future__ import annotations

import math
from typing import Any

import keras

from rlm_tf.models.language.interface import language_model_of

# What is a width in the configurations of language models and of their cells.
_WIDTHS = {
    "units",
    "width",
    "embedding_width",
    "projection_width",
    "hidden_width",
}


def shrunk(model: keras.Model, share: float) -> keras.Model:
    """Returns a new language model whose widths are a share of another's.

    Of the same class, with as many layers and the same rates of dropout; widths of
    transformers are whole multiples of the number of heads. Parameters fall about
    with the square of the share, but for embeddings. A wrapper's language model counts.

    Args:
        model: A language model of this library.
        share: In (0, 1].

    Raises:
        ValueError: If the share is out of range, or the model has no widths.
    """
    if not (math.isfinite(share) and 0 < share <= 1):
        raise ValueError(f"shrunk: `share` must lie in (0, 1], found {share!r}.")
    model = language_model_of(model)
    # Of the mean of several the first.
    model = (getattr(model, "models", None) or [model])[0]
    config = model.get_config()
    heads = config.get("num_heads", 1)
    if not _has_width(config):
        raise ValueError(
            f"shrunk: {type(model).__name__} {model.name!r} says no width that could "
            "be smaller; give a student."
        )
    config = _scaled(config, share, heads)
    config.pop("name", None)
    return type(model).from_config(config)


def _has_width(config: Any) -> bool:
    return isinstance(config, dict) and any(
        name in _WIDTHS or _has_width(value) for name, value in config.items()
    )


def _scaled(value: Any, share: float, heads: int, name: str = "") -> Any:
    if isinstance(value, dict):
        return {own: _scaled(each, share, heads, own) for own, each in value.items()}
    if isinstance(value, list | tuple):
        return [_scaled(each, share, heads, name) for each in value]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if name not in _WIDTHS or not is_number:
        return value
    # Heads that turn pairs of numbers by their position need even widths.
    step = 2 * heads if heads > 1 else 1
    return max(round(value * share / step), 1) * step

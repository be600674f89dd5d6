"""What the arguments of a `RegularizedLanguageModel` must be."""

from __future__ import annotations

import math
from typing import Any

from rlm_tf.checks import check_integer, check_range
from rlm_tf.layers.recurrent.connections import CONNECTIONS
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.models.language.activation_penalties import PENALTIES

_RATES = (
    "input_dropout",
    "layer_dropout",
    "output_dropout",
    "projection_dropout",
    "reset_rate",
    "word_dropout",
)


def check_arguments(model: Any) -> None:
    """Raises ValueError for arguments that a model has and none can have.

    Args:
        model: Has them as attributes.
    """
    name = type(model).__name__
    for argument in ("vocabulary_size", "num_layers", "mixture_components"):
        check_integer(name, argument, getattr(model, argument), 1)
    for cell in model.cells:
        if not isinstance(cell, HiddenStateCell):
            raise ValueError(
                f"{name}: `cell` must be an rlm_tf.layers.HiddenStateCell, found "
                f"{type(cell).__name__}."
            )
    if len(model.cells) != model.num_layers:
        raise ValueError(
            f"{name}: `cell` must be one, or a list of `num_layers` = "
            f"{model.num_layers}, found {len(model.cells)}."
        )
    if model.embedding_width is not None:
        check_integer(name, "embedding_width", model.embedding_width, 1)
    if model.connections not in CONNECTIONS:
        raise ValueError(
            f"{name}: `connections` must be one of {', '.join(CONNECTIONS)}; found "
            f"{model.connections!r}."
        )
    widths = [cell.output_size for cell in model.cells]
    if len(set(widths)) > 1 and model.connections != "stacked":
        raise ValueError(
            f'{name}: layers of several widths must be "stacked"; found widths '
            f"{', '.join(map(str, widths))} and connections {model.connections!r}."
        )
    penalties = {argument: getattr(model, argument) for argument in PENALTIES}
    check_range(name, 0.0, math.inf, **penalties)
    if any(penalties.values()) and model.dropout_samples > 1:
        raise ValueError(
            f"{name}: penalties of activations need `dropout_samples` = 1, found "
            f"{model.dropout_samples}."
        )
    for argument in _RATES:
        value = getattr(model, argument)
        if value is not None and not 0 <= value < 1:
            raise ValueError(f"{name}: `{argument}` must lie in [0, 1), found {value}.")

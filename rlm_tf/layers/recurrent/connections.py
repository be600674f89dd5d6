"""How recurrent layers above one another are wired."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.recurrent.recurrent import Recurrent
from rlm_tf.layers.recurrent.recurrent_cell import States

CONNECTIONS = ("stacked", "skip", "residual")


def run_layers(
    layers: Sequence[Recurrent],
    dropouts: Sequence[ReplicaDropout],
    connections: str,
    inputs: tf.Tensor,
    states: Sequence[States],
    training: bool,
    collected: list[tf.Tensor] | None = None,
) -> tuple[tf.Tensor, list[States]]:
    """Runs layers over one window; all have the same width, but with "stacked".

    With h^l the outputs of layer l and M_l its dropout mask,

    * "stacked": layer l + 1 reads `h^l * M_l`; the result is `h^L`;
    * "skip": the same, but the result is `sum_l h^l`;
    * "residual": with `y^l = h^l * M_l`, layer l + 1 reads `sum_{i<=l} y^i`; the result
      is `sum_l y^l`.

    Args:
        layers: L of them.
        dropouts: One for each layer; the last is used by "residual" alone.
        connections: One of `CONNECTIONS`.
        inputs: Of the first layer.
        states: The initial states of each layer.
        training: Whether dropout acts.
        collected: The outputs h^l of every layer are appended to it.

    Returns:
        The result and the final states of each layer.
    """
    total: tf.Tensor = 0.0
    new_states = []
    for index, (layer, dropout) in enumerate(zip(layers, dropouts, strict=True)):
        outputs, final = layer(inputs, states[index], training=training)
        new_states.append(final)
        if collected is not None:
            collected.append(outputs)
        if connections == "residual":
            inputs = total = total + dropout(outputs, training=training)
            continue
        total = outputs if connections == "stacked" else total + outputs
        if index + 1 < len(layers):
            inputs = dropout(outputs, training=training)
    return total, new_states

"""The model of a run."""

from __future__ import annotations

from typing import Any

import keras

from experiments.kit.recurrent_config import RunConfig
from rlm_tf import layers
from rlm_tf.models import RegularizedLanguageModel, width_for_budget

# Standard deviation of a unit normal that is cut off at two.
_TRUNCATED = 0.87962566

_CELLS: dict[str, type[layers.HiddenStateCell]] = {
    "lstm": layers.LSTMCell,
    "rlstm": layers.RewiredLSTMCell,
    "mlstm": layers.MultiplicativeLSTMCell,
    "gru": layers.GRUCell,
    "elman": layers.ElmanCell,
}


def make_cell(config: RunConfig, units: int) -> layers.HiddenStateCell:
    """Returns the cell of a run, initialised as in the published code."""
    fan_in = keras.initializers.VarianceScaling(1.0, "fan_in", "truncated_normal")
    options: dict[str, Any] = {
        "kernel_initializer": fan_in,
        "recurrent_initializer": fan_in,
        "state_dropout": config.state_dropout,
        "seed": config.seed,
    }
    if config.cell in ("lstm", "mlstm", "rlstm"):
        forget: keras.initializers.Initializer = keras.initializers.TruncatedNormal(
            mean=1.0, stddev=units**-0.5 / _TRUNCATED
        )
        if config.uses_chrono:
            forget = layers.Chrono(config.longest)
        options |= {
            "forget_bias": 0.0,
            "bias_initializer": layers.GateBias(forget, fan_in, seed=config.seed),
        }
    if config.cell in ("lstm", "mlstm"):
        options["cap_input_gate"] = config.cap_input_gate
    cell = _CELLS[config.cell](units, **options)
    if config.rounds == 0:
        return cell
    return layers.MogrifierCell(
        cell,
        config.rounds,
        config.rank,
        use_gate_bias=config.gate_bias,
        condition=config.condition,
        seed=config.seed,
    )


def build_model(
    config: RunConfig, vocabulary_size: int, units: int
) -> RegularizedLanguageModel:
    """Returns the language model of a run with layers of a given width."""
    embedding_width = None
    if config.embedding_ratio < 1:
        embedding_width = max(1, round(config.embedding_ratio * units))
    return RegularizedLanguageModel(
        vocabulary_size,
        make_cell(config, units),
        config.num_layers,
        embedding_width=embedding_width,
        connections=config.connections,
        tied=config.tied,
        mixture_components=config.mixture_components,
        input_dropout=config.input_dropout,
        layer_dropout=config.layer_dropout,
        output_dropout=config.output_dropout,
        reset_rate=config.reset_rate,
        dropout_samples=config.dropout_samples,
        seed=config.seed,
        # Published penalties, rates and norms refer to losses summed over a window.
        clip_norm=config.clip_norm,
        loss_scale=float(config.window),
        l2=config.l2,
    )


def width_of(config: RunConfig, vocabulary_size: int) -> int:
    """Returns the width of the layers: the one given, or what the budget allows."""
    if config.width:
        return config.width
    return width_for_budget(
        config.budget, lambda units: build_model(config, vocabulary_size, units)
    )

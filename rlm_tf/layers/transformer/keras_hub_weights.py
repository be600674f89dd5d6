"""Weights of KerasHub's BERT in our encoder."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

# Of KerasHub's BertBackbone.
_EPSILON = 1e-12


def options_of(backbone: Any, rows: np.ndarray | None) -> dict[str, Any]:
    """Returns the options of the encoder that computes what a backbone does.

    Args:
        backbone: The backbone.
        rows: Which of its tokens the encoder has, int `[V]`; None: all.

    Raises:
        ValueError: If it is no BertBackbone.
    """
    if type(backbone).__name__ != "BertBackbone":
        raise ValueError(
            "TransformerEncoder.from_keras_hub: expected a "
            f"keras_hub.models.BertBackbone, found {type(backbone).__name__}."
        )
    return {
        "vocabulary_size": backbone.vocabulary_size if rows is None else len(rows),
        "num_layers": backbone.num_layers,
        "width": backbone.hidden_dim,
        "num_heads": backbone.num_heads,
        "feed_forward": backbone.intermediate_dim,
        "num_segments": backbone.num_segments,
        "max_length": backbone.max_sequence_length,
        "dropout": backbone.dropout,
        "positions": "absolute",
        "norm": "post",
        "activation": "gelu_tanh",
        "epsilon": _EPSILON,
    }


def copy_weights(backbone: Any, encoder: Any, rows: np.ndarray | None = None) -> None:
    """Gives an encoder the weights of a backbone; `options_of` has made it.

    Args:
        backbone: Where they are.
        encoder: Where they go.
        rows: Which token of the backbone each of the encoder is; None: the same.
    """
    embedding = encoder.embedding
    tokens = np.asarray(backbone.token_embedding.embeddings)
    for source, layer in (
        (tokens if rows is None else tokens[rows], embedding.token_embedding),
        (backbone.position_embedding.position_embeddings, embedding.position_embedding),
        (backbone.segment_embedding.embeddings, embedding.segment_embedding),
    ):
        layer.embeddings.assign(source)
    embedding.norm.set_weights(backbone.embeddings_layer_norm.get_weights())
    for source, block in zip(backbone.transformer_layers, encoder.blocks, strict=True):
        attention = source._self_attention_layer
        width = encoder.width
        parts = [
            [np.asarray(weight) for weight in dense.get_weights()]
            for dense in (
                attention._query_dense,
                attention._key_dense,
                attention._value_dense,
            )
        ]
        block.query_key_value.set_weights(
            [
                np.concatenate([k.reshape(width, width) for k, _ in parts], axis=1),
                np.concatenate([b.reshape(width) for _, b in parts]),
            ]
        )
        kernel, bias = attention._output_dense.get_weights()
        block.attention_output.set_weights([kernel.reshape(width, width), bias])
        for layer, own in (
            (source._self_attention_layer_norm, block.attention_norm),
            (source._feedforward_intermediate_dense, block.network_hidden),
            (source._feedforward_output_dense, block.network_output),
            (source._feedforward_layer_norm, block.network_norm),
        ):
            own.set_weights(layer.get_weights())


def read_backbone(folder: str | pathlib.Path) -> Any:
    """Reads a BERT checkpoint: a folder in Hugging Face's layout, or KerasHub's.

    Raises:
        FileNotFoundError: If there is no such folder, or no configuration in it.
        ValueError: If KerasHub cannot read it.
    """
    folder = pathlib.Path(folder)
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"TransformerEncoder.from_checkpoint: {folder} has no config.json; "
            "expected the folder of a BERT checkpoint."
        )
    kind = _model_type(folder / "config.json")
    if kind not in (None, "bert"):
        raise ValueError(
            f"TransformerEncoder.from_checkpoint: {folder} must be a BERT checkpoint, "
            f'its config.json says "model_type": {kind!r}.'
        )
    weights = ("model.safetensors", "model.weights.h5")
    if not any((folder / name).is_file() for name in weights):
        raise FileNotFoundError(
            f"TransformerEncoder.from_checkpoint: {folder} has no weights; expected "
            f"{' or '.join(weights)}."
        )
    # Importing it takes seconds.
    from keras_hub.models import BertBackbone
    from safetensors import SafetensorError

    try:
        return BertBackbone.from_preset(str(folder))
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"TransformerEncoder.from_checkpoint: {folder} is no BERT checkpoint that "
            f"KerasHub reads: {reason}."
        ) from error


def _model_type(path: pathlib.Path) -> str | None:
    """Returns which network a configuration in Hugging Face's layout is of, or None."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError:
        # KerasHub says what is wrong with it.
        return None
    kind = found.get("model_type") if isinstance(found, dict) else None
    return None if kind is None else str(kind)

"""A published BERT, whole: encoder, head of masked words, pieces of words."""

from __future__ import annotations

import json
import pathlib
from typing import Any, NamedTuple

import numpy as np

from rlm_tf.data.text.bert_vocabulary import bert_vocabulary
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_PRESET_WEIGHTS = "model.weights.h5"
# What checkpoints call the activation, and what the encoder does.
_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh"}
_HEAD = "cls.predictions."


class PublishedBert(NamedTuple):
    """What a checkpoint holds.

    Attributes:
        model: Its encoder and its head of masked words.
        vocabulary: Its pieces, special tokens in front as our encoders have them.
        has_head: Whether the checkpoint has a head of masked words; else `model` has
            an untrained one, whose predictions say nothing.
    """

    model: MaskedLanguageModel
    vocabulary: Vocabulary
    has_head: bool


def read_bert(folder: str | pathlib.Path, **options: Any) -> PublishedBert:
    """Reads a published BERT, to be used like an encoder of ours.

    Its tokens have other numbers than published, padding, unknown, [CLS], [SEP] and
    [MASK] in front, and the rows of its embeddings follow them. `gelu` is the exact
    one, where `TransformerEncoder.from_checkpoint` has KerasHub's approximation.

    Args:
        folder: In Hugging Face's layout, with `config.json`, `model.safetensors`,
            `vocab.txt` and, if there is one, `tokenizer_config.json`; or a preset of
            KerasHub, with `config.json`, `model.weights.h5` and its tokenizer's files,
            of which no head of masked words is read.
        **options: Of `TransformerEncoder`, such as `dropout`.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If it is none that KerasHub reads, or has fewer embeddings than
            pieces, or another activation than GELU.
    """
    folder = pathlib.Path(folder)
    vocabulary, rows = bert_vocabulary(folder)
    config = _config(folder)
    name = config.get("hidden_act", "gelu")
    if "registered_name" in config:
        # A preset of KerasHub, whose GELU is the approximate one.
        name, config = "gelu_new", config["config"]
        config = {"vocab_size": config["vocabulary_size"]}
    if name not in _ACTIVATIONS:
        raise ValueError(
            f"read_bert: {folder / _CONFIG} has hidden_act {name!r}; expected one of "
            f"{', '.join(_ACTIVATIONS)}."
        )
    size = config.get("vocab_size", len(rows))
    if size < len(rows):
        raise ValueError(
            f"read_bert: {folder} has {len(rows)} pieces and embeddings of {size} "
            "only: vocab.txt is of another checkpoint."
        )
    own = {"activation": _ACTIVATIONS[name], "rows": rows}
    encoder = TransformerEncoder.from_checkpoint(folder, **own, **options)
    model = MaskedLanguageModel(encoder)
    return PublishedBert(model, vocabulary, _read_head(folder, model, rows))


def weights_of(folder: str | pathlib.Path) -> pathlib.Path:
    """Returns the path of a checkpoint's weights."""
    preset = pathlib.Path(folder) / _PRESET_WEIGHTS
    return preset if preset.is_file() else pathlib.Path(folder) / _WEIGHTS


def _config(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"read_bert: {folder} has no {_CONFIG}.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"read_bert: {path} is damaged: {error}.") from None
    if not isinstance(found, dict):
        raise ValueError(
            f"read_bert: {path} must be an object, found {type(found).__name__}."
        )
    return found


def _read_head(
    folder: pathlib.Path, model: MaskedLanguageModel, rows: np.ndarray
) -> bool:
    """Gives a model the head of a checkpoint; returns whether there is one."""
    if not (folder / _WEIGHTS).is_file():
        return False
    from safetensors import safe_open

    with safe_open(str(weights_of(folder)), framework="np") as tensors:
        names = set(tensors.keys())
        if f"{_HEAD}transform.dense.weight" not in names:
            return False

        def tensor(*names_of_it: str) -> np.ndarray:
            name = next(n for n in names_of_it if _HEAD + n in names)
            return np.asarray(tensors.get_tensor(_HEAD + name))

        norm = "transform.LayerNorm."
        head = model.head
        head.dense.set_weights(
            [tensor("transform.dense.weight").T, tensor("transform.dense.bias")]
        )
        # The older names are TensorFlow's.
        head.norm.set_weights(
            [
                tensor(f"{norm}weight", f"{norm}gamma"),
                tensor(f"{norm}bias", f"{norm}beta"),
            ]
        )
        head.output_layer.bias.assign(tensor("bias", "decoder.bias")[rows])
    return True

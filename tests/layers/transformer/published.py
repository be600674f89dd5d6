"""BERT checkpoints in Hugging Face's layout, tiny and random."""

from __future__ import annotations

import json

import numpy as np

from rlm_tf.layers import TransformerEncoder
from tests.references.layers import set_random_weights


def backbone_of(**options):
    """Returns a random BERT of KerasHub."""
    from keras_hub.models import BertBackbone

    sizes = {
        "vocabulary_size": 12,
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 10,
        "max_sequence_length": 7,
    }
    backbone = BertBackbone(**{**sizes, **options})
    set_random_weights(backbone)
    return backbone


def write_config(folder, backbone):
    """Writes `config.json`."""
    config = {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "hidden_act": "gelu",
        "vocab_size": backbone.vocabulary_size,
        "hidden_size": backbone.hidden_dim,
        "num_hidden_layers": backbone.num_layers,
        "num_attention_heads": backbone.num_heads,
        "intermediate_size": backbone.intermediate_dim,
        "hidden_dropout_prob": 0.1,
        "max_position_embeddings": backbone.max_sequence_length,
        "type_vocab_size": backbone.num_segments,
        "pad_token_id": 0,
    }
    (folder / "config.json").write_text(json.dumps(config))


def write_bert(folder, words, *, head=True, **options):
    """Writes a checkpoint with these pieces; returns its backbone, and its head.

    The head, float32 arrays by name, is {} without one.
    """
    from safetensors.numpy import save_file

    backbone = backbone_of(vocabulary_size=len(words), **options)
    write_config(folder, backbone)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    tensors = tensors_of(TransformerEncoder.from_keras_hub(backbone), backbone)
    width, rng = backbone.hidden_dim, np.random.default_rng(3)
    shapes = {
        "transform.dense.weight": (width, width),
        "transform.dense.bias": (width,),
        "transform.LayerNorm.gamma": (width,),
        "transform.LayerNorm.beta": (width,),
        "bias": (len(words),),
    }
    own = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
        if head
    }
    tensors |= {f"cls.predictions.{name}": value for name, value in own.items()}
    save_file(tensors, folder / "model.safetensors")
    return backbone, own


def tensors_of(encoder, backbone):
    """Returns weights by the names and in the shapes of published checkpoints."""
    tables = encoder.embedding
    found = {
        "embeddings.word_embeddings.weight": tables.token_embedding.embeddings,
        "embeddings.position_embeddings.weight": tables.position_embedding.embeddings,
        "embeddings.token_type_embeddings.weight": tables.segment_embedding.embeddings,
    }

    def norm(name, layer):
        found[f"{name}.weight"], found[f"{name}.bias"] = layer.weights

    def dense(name, kernel, bias):
        found[f"{name}.weight"], found[f"{name}.bias"] = np.transpose(kernel), bias

    norm("embeddings.LayerNorm", tables.norm)
    for number, block in enumerate(encoder.blocks):
        layer = f"encoder.layer.{number}"
        kernels = np.split(block.query_key_value.kernel.numpy(), 3, axis=1)
        biases = np.split(block.query_key_value.bias.numpy(), 3)
        for name, kernel, bias in zip(
            ("query", "key", "value"), kernels, biases, strict=True
        ):
            dense(f"{layer}.attention.self.{name}", kernel, bias)
        for name, own in (
            ("attention.output.dense", block.attention_output),
            ("intermediate.dense", block.network_hidden),
            ("output.dense", block.network_output),
        ):
            dense(f"{layer}.{name}", own.kernel.numpy(), own.bias.numpy())
        norm(f"{layer}.attention.output.LayerNorm", block.attention_norm)
        norm(f"{layer}.output.LayerNorm", block.network_norm)
    pooled = backbone.pooled_dense
    dense("pooler.dense", pooled.kernel.numpy(), pooled.bias.numpy())
    return {
        f"bert.{name}": np.ascontiguousarray(np.asarray(value))
        for name, value in found.items()
    }

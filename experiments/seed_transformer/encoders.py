"""Encoders of the study, new ones for each training."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

import keras

from experiments.seed_transformer.config import TransformerConfig
from rlm_tf import load_model
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.data import Vocabulary, encoder_vocabulary
from rlm_tf.layers import EncoderEmbedding, PooledEncoder, TransformerEncoder
from rlm_tf.models import MaskedLanguageModel, TextClassifier, TextReader
from rlm_tf.models.encoders.other_dropout import with_dropout
from rlm_tf.models.encoders.published_bert import read_bert

_TINY = "tiny"


class Read(NamedTuple):
    """An encoder that was trained before.

    Attributes:
        encoder: The encoder.
        vocabulary: Its vocabulary.
        masked_model: What predicts masked pieces with it; None: nothing does.
    """

    encoder: TransformerEncoder
    vocabulary: Vocabulary
    masked_model: MaskedLanguageModel | None


def read_encoder(config: TransformerConfig, texts: list[str]) -> Read:
    """Reads an encoder and its vocabulary; `tiny` is made up from texts.

    Raises:
        FileNotFoundError: If there is none.
    """
    if config.encoder == _TINY:
        vocabulary = encoder_vocabulary("\n".join(texts), 300)
        encoder = TransformerEncoder(
            len(vocabulary), num_layers=1, width=8, num_heads=2, seed=1
        )
        return Read(encoder, vocabulary, MaskedLanguageModel(encoder, seed=1))
    folder = pathlib.Path(config.encoder)
    if (folder / "vocab.txt").exists():
        with native_silence():
            bert = read_bert(folder)
        head = bert.model if bert.has_head else None
        return Read(bert.model.encoder, bert.vocabulary, head)
    if not (folder / "model.keras").exists():
        raise FileNotFoundError(
            f"{folder / 'model.keras'} is not there (--encoder): `python -m "
            "experiments.electra --preset=generators` trains it."
        )
    with native_silence():
        vocabulary = Vocabulary.load(folder / "vocabulary.json")
    model = load_model(folder / "model.keras", compile=False)
    return Read(model.encoder, vocabulary, model)


def classifier(
    config: TransformerConfig,
    encoder: TransformerEncoder,
    reader: TextReader | None,
    class_names: tuple[str, ...],
    dropout: tuple[str, bool] | None,
    seed: int,
) -> TextClassifier:
    """Returns a new compiled classifier with the weights of an encoder.

    Args:
        config: The settings.
        encoder: It stays as it is.
        reader: Of pieces, where texts are read.
        class_names: C names.
        dropout: Place and whether of whole vectors, of an arm's own; None: as usual.
        seed: Of the head, and of dropout.
    """
    rate = config.dropout
    if dropout is not None and dropout[0] == "all":
        rate = config.arm_dropout
    own = with_dropout(encoder, rate, seed=seed)
    if dropout is not None and dropout[0] != "all":
        options = encoder.embedding.get_config()
        options.pop("name")
        embedding = EncoderEmbedding(
            **{
                **options,
                "dtype": encoder.dtype_policy,
                "dropout": config.arm_dropout,
                "dropout_place": dropout[0],
                "whole_tokens": dropout[1],
                "seed": seed,
            }
        )
        embedding.set_weights(encoder.embedding.get_weights())
        own = own.with_embedding(embedding)
    model = TextClassifier(
        PooledEncoder(own),
        len(class_names),
        dropout=config.dropout,
        reader=reader,
        class_names=class_names,
        clip_norm=1.0,
        seed=seed,
    )
    model.compile(keras.optimizers.Adamax(config.rate, beta_2=0.98, epsilon=1e-6))
    return model

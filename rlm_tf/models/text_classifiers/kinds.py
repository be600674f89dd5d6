"""Classifiers of documents by the name of their encoder, with rates that suit it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import keras
import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_option
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.text.averaged_words import AveragedWords
from rlm_tf.layers.text.convolutional_text import ConvolutionalText
from rlm_tf.layers.text.recurrent_text import RecurrentText
from rlm_tf.layers.text.tfidf_bag import TfidfBag
from rlm_tf.models.text_classifiers.text_classifier import TextClassifier
from rlm_tf.models.text_classifiers.text_reader import TextReader
from rlm_tf.optimizers.row_adam import RowAdam

Kind = Literal["linear", "averaged", "convolutional", "recurrent"]
KINDS: tuple[Kind, ...] = ("linear", "averaged", "convolutional", "recurrent")
# Of Adam, on batches of 64.
RATES: dict[Kind, float] = {
    "linear": 0.02,
    "averaged": 0.01,
    "convolutional": 0.002,
    "recurrent": 0.005,
}
_WIDTH, _FILTERS, _UNITS = 64, 64, 64
_DROPOUT = 0.3


def word_classifier(
    kind: Kind,
    reader: TextReader,
    class_names: Sequence[str],
    *,
    tokens: npt.ArrayLike | None = None,
    idf: npt.ArrayLike | None = None,
    learning_rate: float | None = None,
    dropout: float | None = None,
    l2: float = 0.0,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> TextClassifier:
    """Returns a new compiled classifier on words.

    Args:
        kind: "linear" (of tf-idf), "averaged" (vectors of words and pairs),
            "convolutional" or "recurrent" (an LSTM in both directions).
        reader: What makes tokens of texts.
        class_names: C names.
        tokens: int `[N, T]`, documents that words are counted in; "linear" needs them,
            or `idf`.
        idf: float `[V]`, see `inverse_document_frequencies`, in place of `tokens`.
        learning_rate: Of Adam; None: `RATES[kind]`.
        dropout: Rate before the head, or of the logits of "linear"; None: 0.3 of
            "convolutional" and "recurrent", 0 of others.
        l2: Half the factor of the squared weights in the loss. Of tables of words it
            makes gradients dense, which takes many times as long; `weight_decay` does
            not.
        weight_decay: Share of all weights, times the rate, that a step takes off
            (Loshchilov and Hutter 2019).
        seed: Of first weights and dropout.

    Raises:
        ValueError: If the kind is unknown, or "linear" has neither `tokens` nor
            `idf`.
    """
    name = "word_classifier"
    check_option(name, "kind", kind, KINDS)
    size, classes = reader.size, len(class_names)
    rate = RATES[kind] if learning_rate is None else learning_rate
    head, own_dropout = True, 0.0
    encoder: keras.layers.Layer
    if kind == "linear":
        if tokens is None and idf is None:
            raise ValueError(f"{name}: kind 'linear' needs `tokens` or `idf`.")
        encoder = TfidfBag(size, classes, seed=seed)
        if idf is None:
            encoder.adapt(np.asarray(tokens))
        else:
            encoder.build()
            encoder.idf.assign(np.asarray(idf))
        head = False
    elif kind == "averaged":
        encoder = AveragedWords(size, _WIDTH, seed=seed)
    elif kind == "convolutional":
        encoder = ConvolutionalText(size, _WIDTH, _FILTERS, seed=seed)
        own_dropout = _DROPOUT
    else:
        encoder = RecurrentText(size, _WIDTH, LSTMCell(_UNITS), seed=seed)
        own_dropout = _DROPOUT
    model = TextClassifier(
        encoder,
        classes,
        head=head,
        dropout=own_dropout if dropout is None else dropout,
        reader=reader,
        class_names=class_names,
        l2=l2,
        seed=seed,
    )
    adam = keras.optimizers.Adam if kind == "linear" else RowAdam
    model.compile(adam(rate, weight_decay=weight_decay or None))
    return model

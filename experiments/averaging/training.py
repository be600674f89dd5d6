"""The language models of the studies of averages."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from experiments.averaging.config import AveragingConfig
from experiments.kit import recurrent_config as mogrifier_config
from experiments.kit.recurrent_model import build_model
from experiments.kit.run_files import EpochProgress
from rlm_tf.averaging import WeightAveraging
from rlm_tf.data import contiguous_batches, load_corpus
from rlm_tf.data.batches.contiguous_batches import ContiguousBatches
from rlm_tf.optimizers import RectifiedAdam
from rlm_tf.training import ExactResume, ResumableBatches, interruptible

_BATCH, _WINDOW = 20, 35
_DROPOUT: dict[str, Any] = {
    "input_dropout": 0.5,
    "layer_dropout": 0.3,
    "state_dropout": 0.3,
    "output_dropout": 0.6,
}


class Texts(NamedTuple):
    """What a run trains on and measures.

    Attributes:
        train: Batches of the training text.
        valid: Batches of the beginning of the validation text, for losses.
        train_loss: The same of the training text.
        vocabulary_size: Number of words.
    """

    train: ContiguousBatches
    valid: tf.data.Dataset
    train_loss: tf.data.Dataset
    vocabulary_size: int


def texts(config: AveragingConfig, share: float = 1.0) -> Texts:
    """Returns the texts, of the training text only a share of what is used."""
    corpus = load_corpus(config.corpus)
    eos = corpus.vocabulary.eos_id
    count = max(int(len(corpus.train) * config.fraction * share), 1500)

    def batches(tokens: np.ndarray) -> ContiguousBatches:
        return contiguous_batches(tokens, _BATCH, _WINDOW, prefix=eos)

    return Texts(
        batches(corpus.train[:count]),
        batches(corpus.valid[: config.loss_tokens]).dataset().cache(),
        batches(corpus.train[:count][: config.loss_tokens]).dataset().cache(),
        len(corpus.vocabulary),
    )


def train(
    config: AveragingConfig,
    given: Texts,
    averages: Sequence[WeightAveraging],
    folder: pathlib.Path,
    *,
    epochs: int,
    width: int | None = None,
    dropout: bool = True,
    learning_rate: Any = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> keras.Model:
    """Trains a model with averages of its weights beside it.

    What a killed run has left in `folder` is gone on with; averages and callbacks get
    the state that they had then.
    """
    keras.utils.set_random_seed(config.seed)
    settings = mogrifier_config.RunConfig(
        window=_WINDOW,
        l2=1e-4 if dropout else 0.0,
        seed=config.seed,
        **(_DROPOUT if dropout else {}),
    )
    model = build_model(settings, given.vocabulary_size, width or config.width)
    model.compile(
        RectifiedAdam(
            config.learning_rate if learning_rate is None else learning_rate, beta_1=0.0
        )
    )
    data = ResumableBatches(given.train)
    for number, average in enumerate(averages):
        average.name = f"average_{number}"
    # All averages of a model are written: seldom.
    saver = ExactResume(folder, data, [*averages, *callbacks], every_seconds=600)
    with interruptible(saver):
        model.fit(
            data.dataset,
            epochs=epochs,
            shuffle=False,
            verbose=0,
            callbacks=[saver, EpochProgress("language model", epochs)],
        )
    return model


def curve(averaging: WeightAveraging) -> dict[str, list[Any]]:
    """Returns the evaluations of an average as columns."""
    columns: dict[str, list[Any]] = {}
    for row in averaging.evaluations:
        for key, value in row.items():
            columns.setdefault(key, []).append(
                round(value, 5) if isinstance(value, float) else value
            )
    return columns


def nll_of(model: keras.Model, data: tf.data.Dataset) -> float:
    """Returns the mean negative log-likelihood of a data set, nats a token."""
    return float(model.evaluate(data, verbose=0, return_dict=True)["nll"])

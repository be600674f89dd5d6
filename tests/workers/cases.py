"""Models that several workers train, and the same in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.models import InBatchContexts, InducedModelMatching
from rlm_tf.optimizers import DecoupledOptimizer
from tests.models.imm import imm_fixtures
from tests.models.latent import vae_fixtures
from tests.objective_model.declared_models import TwoParts, data


class Case(NamedTuple):
    """A model and its data.

    Attributes:
        model: Returns it.
        optimizer: Returns its optimiser.
        data: Returns the batches.
        groups_by_replica: Whether it is one of the models that depend on the number of
            replicas, not only on the batch.
    """

    model: Callable[[], keras.Model]
    optimizer: Callable[[], keras.optimizers.Optimizer]
    data: Callable[[], tf.data.Dataset]
    groups_by_replica: bool = False


def _momentum() -> keras.optimizers.Optimizer:
    return keras.optimizers.SGD(0.5, momentum=0.9)


def _language_model() -> keras.Model:
    return imm_fixtures.language_model(dropout=0.3, clip_norm=1.0)


def _with_bank() -> keras.Model:
    return InducedModelMatching(
        imm_fixtures.language_model(),
        imm_fixtures.restricted_model(),
        InBatchContexts(min_count=3, bank_size=60),
    )


def _parts() -> keras.optimizers.Optimizer:
    optimizers = {
        "generator": keras.optimizers.SGD(0.1, momentum=0.9),
        "discriminator": keras.optimizers.Adam(0.01),
    }
    return DecoupledOptimizer(optimizers, {"generator": 0.5})


def _sentences() -> tf.data.Dataset:
    # The last batch is smaller, and leaves the second worker without a row.
    rows = np.concatenate([vae_fixtures.SENTENCES, vae_fixtures.SENTENCES[:1]])
    return tf.data.Dataset.from_tensor_slices(rows).batch(4)


CASES = {
    "plain": Case(_language_model, _momentum, lambda: imm_fixtures.batches().dataset()),
    "bank": Case(_with_bank, _momentum, lambda: imm_fixtures.batches().dataset(), True),
    "vimco": Case(
        lambda: vae_fixtures.sentence_model("vimco"),
        # Rounding of what samples weigh grows from step to step.
        lambda: keras.optimizers.SGD(0.1),
        _sentences,
    ),
    "decoupled": Case(TwoParts, _parts, lambda: data(size=9)),
}


def trained(case: Case, strategy: tf.distribute.Strategy) -> dict[str, Any]:
    """Trains a case's model for two epochs, with validation, and evaluates it.

    Returns:
        `weights`, a list of arrays; `history`; `evaluated`, by name.
    """
    with strategy.scope():
        model = case.model()
        model.compile(case.optimizer())
    batches = case.data()
    history = model.fit(
        batches, validation_data=batches, epochs=2, verbose=0, shuffle=False
    ).history
    evaluated = model.evaluate(batches, verbose=0, return_dict=True)
    weights = [weight.numpy() for weight in model.weights]
    return {"weights": weights, "history": history, "evaluated": evaluated}

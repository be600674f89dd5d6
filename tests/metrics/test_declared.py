"""What logs hold in training and evaluation, and what Keras' callbacks make of it."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.metrics import declared
from rlm_tf.models import InBatchContexts, ObjectiveModel, Term
from tests.models.imm import imm_fixtures as fixtures

pytestmark = pytest.mark.eager


class Scripted(ObjectiveModel):
    """Its loss is what the data say; `extra` is a term of training alone."""

    def __init__(self):
        super().__init__(term_names=("nll", "extra"))
        self.w = self.add_weight(name="w", shape=(), initializer="ones")
        self.hits = declared(keras.metrics.Mean(name="hits"), "up")
        self.built = True

    def make_term_metrics(self, name):
        metrics = fixtures.language_model().make_term_metrics(name)
        return metrics if name == "nll" else metrics[:1]

    def objective_terms(self, x, y, sample_weight, training):
        self.hits.update_state(-x)
        terms = [Term("nll", x + 0.0 * self.w)]
        return [*terms, Term("extra", x)] if training else terms


def _scripted() -> ObjectiveModel:
    model = Scripted()
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    return model


class Validation(keras.callbacks.Callback):
    """Makes the next validation loss the next of a list."""

    def __init__(self, losses):
        super().__init__()
        self.losses = losses
        self.variable = tf.Variable(0.0)

    def on_epoch_begin(self, epoch, logs=None):
        self.variable.assign(self.losses[epoch])

    def data(self):
        one = tf.data.Dataset.from_tensors(0.0)
        return one.map(lambda _: self.variable[tf.newaxis])


def _fit(callback, losses):
    model, validation = _scripted(), Validation(losses)
    data = tf.data.Dataset.from_tensors(tf.ones([1]))
    history = model.fit(
        data,
        validation_data=validation.data(),
        epochs=len(losses),
        verbose=0,
        shuffle=False,
        callbacks=[validation, callback],
    )
    return model, history


@pytest.mark.slow
@pytest.mark.parametrize("monitor", ["loss", "nll", "perplexity", "hits"])
def test_callbacks_need_no_mode(monitor, tmp_path):
    monitor = f"val_{monitor}"
    # The loss falls, then rises; so do nll and perplexity. `hits` is its negative.
    losses = [2.0, 1.0, 3.0, 4.0, 5.0]
    stopping = keras.callbacks.EarlyStopping(monitor, patience=2)
    _, history = _fit(stopping, losses)
    assert stopping.stopped_epoch == 3 and len(history.epoch) == 4
    path = str(tmp_path / "{epoch}.weights.h5")
    _fit(
        keras.callbacks.ModelCheckpoint(
            path, monitor, save_best_only=True, save_weights_only=True
        ),
        losses[:3],
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "1.weights.h5",
        "2.weights.h5",
    ]
    plateau = keras.callbacks.ReduceLROnPlateau(monitor, factor=0.5, patience=1)
    model, _ = _fit(plateau, losses[:4])
    np.testing.assert_allclose(model.optimizer.learning_rate, 0.1 / 4)


def test_evaluation_logs_only_what_it_updates():
    model = _scripted()
    logs = model.test_on_batch(tf.ones([1]), return_dict=True)
    assert set(logs) == {"loss", "nll", "perplexity", "hits"}
    _, history = _fit(keras.callbacks.Callback(), [1.0])
    assert set(history.history) == {
        *("loss", "nll", "perplexity", "hits", "extra"),
        *("val_loss", "val_nll", "val_perplexity", "val_hits"),
    }
    assert len(model.evaluate(tf.ones([1, 1]), verbose=0)) == 4


def test_metrics_of_induced_model_matching_stay_in_training():
    model = fixtures.eager(InBatchContexts(min_count=1))
    training = {"loss", "nll", "perplexity", "imm", "imm_coverage", "imm_count"}
    seen = []
    watch = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda _, logs: seen.append(set(logs)),
        on_epoch_end=lambda *_: seen.append(model.count_quantiles.result()),
    )
    batch = fixtures.element()
    data = tf.data.Dataset.from_tensors(batch)
    history = fixtures.fit(model, data, validation_data=data, callbacks=[watch])
    evaluated = {"loss", "nll", "perplexity"}
    assert set(history) == training | {f"val_{name}" for name in evaluated}
    step, quartiles = seen
    assert step == training
    # Validation, which came before, left them.
    assert quartiles["imm_count_p50"] >= 1
    assert set(model.evaluate(data, verbose=0, return_dict=True)) == evaluated
    (tokens, _), targets, _ = batch
    assert set(model.test_on_batch(tokens, targets, return_dict=True)) == evaluated

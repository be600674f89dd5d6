"""Learning-rate halving, best weights and the start rule, driven by hand."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest

from rlm_tf.training import BestWeights, LearningRateHalving, StartRule
from rlm_tf.training.learning_rate import get_learning_rate


class Switched(keras.Model):
    """Has one weight, one slot and the switch of additional terms as a weight."""

    def __init__(self, optimizer=None):
        super().__init__()
        self.weight = self.add_weight(shape=(1,), initializer="zeros", name="w")
        self.active = self.add_weight(
            shape=(), initializer="zeros", trainable=False, name="active"
        )
        self.built = True
        self.compile(optimizer or keras.optimizers.SGD(1.0, momentum=0.5), "mse")
        self.optimizer.build(self.trainable_variables)

    def reach(self, value):
        """Plays an epoch of training that ends at a weight and a momentum."""
        self.weight.assign([value])
        self.optimizer.variables[2].assign([10 * value])
        self.optimizer.iterations.assign_add(5)


def state(model):
    return (
        float(model.weight.numpy()[0]),
        float(model.optimizer.variables[2].numpy()[0]),
        int(model.optimizer.iterations.numpy()),
        get_learning_rate(model),
    )


def begin(callback, model):
    callback.set_model(model)
    callback.on_train_begin()
    return callback


def test_halving_reloads_weights_and_slots_but_not_counters():
    model = Switched()
    halving = begin(LearningRateHalving(max_decays=1), model)
    for epoch, (weight, nll) in enumerate([(1.0, 3.0), (2.0, 2.0), (3.0, 2.5)]):
        model.reach(weight)
        halving.on_epoch_end(epoch, {"val_nll": nll})
    assert state(model) == (2.0, 20.0, 15, 0.5)
    assert (halving.best.value, halving.best.epoch, halving.decays) == (2.0, 1, 1)
    assert not model.stop_training
    # Equal is no gain; one decay was allowed.
    model.reach(4.0)
    halving.on_epoch_end(3, {"val_nll": 2.0})
    assert model.stop_training
    assert state(model) == (2.0, 20.0, 20, 0.5)


def test_halving_options():
    model = Switched()
    halving = begin(
        LearningRateHalving("val_loss", factor=0.1, reload_best=False, min_gain=0.5),
        model,
    )
    for epoch, (weight, loss) in enumerate([(1.0, 3.0), (2.0, 2.8), (3.0, math.nan)]):
        model.reach(weight)
        halving.on_epoch_end(epoch, {"val_loss": loss})
    # 2.8 is better than 3 but not by enough; not-a-number gains nothing.
    assert halving.best.value == 2.8
    assert state(model) == (3.0, 30.0, 15, pytest.approx(0.01))


def test_halving_waits_for_its_patience(caplog):
    model = Switched()
    options = {"patience": 2, "max_decays": 1, "reload_best": False}
    halving = begin(LearningRateHalving("loss", **options), model)
    rates = []
    for epoch, loss in enumerate([3.0, 3.5, 2.0, 2.5, 2.4]):
        halving.on_epoch_end(epoch, {"loss": loss})
        rates.append(get_learning_rate(model))
    # One worse epoch lowers nothing, two in a row do.
    assert rates == [1.0, 1.0, 1.0, 1.0, 0.5]
    halving.on_epoch_end(5, {"loss": 2.2})
    later = begin(LearningRateHalving("loss", **options), model)
    later.set_state(halving.get_state())
    with caplog.at_level("INFO", logger="rlm_tf"):
        later.on_epoch_end(6, {"loss": 2.1})
    assert model.stop_training and get_learning_rate(model) == 0.5
    assert "Epoch 7: training stops: loss 2.1 did not beat 2 (epoch 3)" in caplog.text
    # Checkpoints of before there was patience.
    later.set_state({"best": halving.get_state()["best"], "decays": 1})
    with pytest.raises(ValueError, match="patience"):
        LearningRateHalving(patience=0)


def test_halving_goes_on_from_its_state():
    model = Switched()
    halving = begin(LearningRateHalving(), model)
    model.reach(1.0)
    halving.on_epoch_end(0, {"val_nll": 3.0})
    other = begin(LearningRateHalving(), model)
    other.set_state(halving.get_state())
    model.reach(5.0)
    other.on_epoch_end(1, {"val_nll": 4.0})
    assert state(model)[0] == 1.0
    assert other.decays == 1


def test_halving_with_loss_scaling():
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0))
    model = Switched(optimizer)
    halving = begin(LearningRateHalving(), model)
    halving.on_epoch_end(0, {"val_nll": 3.0})
    optimizer.dynamic_scale.assign(2.0)
    halving.on_epoch_end(1, {"val_nll": 4.0})
    assert get_learning_rate(model) == 0.5
    assert float(optimizer.dynamic_scale.numpy()) == 2.0


def test_halving_errors():
    with pytest.raises(ValueError, match="`factor` must lie in"):
        LearningRateHalving(factor=1.0)
    with pytest.raises(ValueError, match="`max_decays` must be >= 0"):
        LearningRateHalving(max_decays=-1)
    halving = begin(LearningRateHalving(), Switched())
    with pytest.raises(ValueError, match=r"watches `val_nll`.*\['loss'\].*validation"):
        halving.on_epoch_end(0, {"loss": 1.0})
    schedule = keras.optimizers.schedules.ExponentialDecay(1.0, 10, 0.5)
    with pytest.raises(ValueError, match="LearningRateHalving sets the learning rate"):
        begin(LearningRateHalving(), Switched(keras.optimizers.SGD(schedule)))


def test_best_weights_need_a_copy_of_this_model():
    model, best = Switched(), BestWeights()
    assert not best.available
    with pytest.raises(ValueError, match="the copy has 0"):
        best.restore(model)


def test_start_rule_switches_on_once_and_survives_reloads():
    model = Switched()
    halving = begin(LearningRateHalving(), model)
    rule = begin(StartRule(90.0, learning_rate=0.25), model)
    perplexities = [100.0, 89.0, 95.0, 80.0]
    active, rates = [], []
    for epoch, perplexity in enumerate(perplexities):
        rule.on_epoch_begin(epoch)
        active.append(float(model.active.numpy()))
        for callback in (halving, rule):
            callback.on_epoch_end(epoch, {"val_nll": math.log(perplexity)})
        rates.append(get_learning_rate(model))
    # Epoch 2 reloads weights of epoch 1, when the rule was off.
    assert active == [0.0, 0.0, 1.0, 1.0]
    assert rates == [1.0, 0.25, 0.125, 0.125]
    again = begin(StartRule(), model)
    again.set_state(rule.get_state())
    model.active.assign(0.0)
    again.on_epoch_begin(4)
    assert model.active.numpy() == 1.0


def test_start_rule_at_the_threshold_and_beyond():
    rule = begin(StartRule(50.0), Switched())
    for nats in (math.log(50.0), math.nan, math.inf):
        rule.on_epoch_end(0, {"val_nll": nats})
        assert not rule.started


def test_start_rule_errors():
    with pytest.raises(ValueError, match="`perplexity` must be positive"):
        StartRule(0.0)
    with pytest.raises(ValueError, match="`learning_rate` must be positive"):
        StartRule(learning_rate=-1.0)
    model = keras.Sequential([keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="Sequential has no variable `active`"):
        begin(StartRule(), model)
    np.testing.assert_array_equal(begin(StartRule(), Switched()).model.active, 0.0)

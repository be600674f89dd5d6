"""Strategies in Keras' own `Distiller`, and what is to be known of that one."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distillation as strategies
from rlm_tf import distribution
from rlm_tf.distillation import Strategy
from rlm_tf.models import Distillation
from rlm_tf.objectives import distillation as outputs
from tests.references.distillation_reference import ORACLE

_X = np.random.default_rng(0).normal(size=(6, 4, 4, 1)).astype("float32")
_LABELS = np.array([0, 1, 2, 0, 1, 2])
_MAPS, _VECTORS = ("relu", "relu"), ("pooled", "pooled")
_STRATEGIES = {
    "KD": lambda: strategies.KD(3.0),
    "ReverseKD": lambda: strategies.ReverseKD(3.0),
    "GeneralisedJSD": lambda: strategies.GeneralisedJSD(0.3, 2.0),
    "StandardisedKD": lambda: strategies.StandardisedKD(3.0),
    "DIST": lambda: strategies.DIST(1.0, 2.0, 3.0),
    "AttentionTransfer": lambda: strategies.AttentionTransfer(*_MAPS),
    "NeuronSelectivity": lambda: strategies.NeuronSelectivity(*_MAPS),
    "SimilarityPreserving": lambda: strategies.SimilarityPreserving(*_MAPS),
    "RelationalKD": lambda: strategies.RelationalKD(*_VECTORS),
    "ProbabilisticTransfer": lambda: strategies.ProbabilisticTransfer(*_VECTORS),
    "FitNet": lambda: strategies.FitNet(*_MAPS),
    "FactorTransfer": lambda: strategies.FactorTransfer(*_MAPS, share=0.4),
    "CorrelationCongruence": lambda: strategies.CorrelationCongruence(
        *_VECTORS, width=4
    ),
    "VariationalInformation": lambda: strategies.VariationalInformation(
        *_MAPS, variance=2.0
    ),
    "ActivationBoundary": lambda: strategies.ActivationBoundary(*_MAPS, margin=0.5),
}


def _network(channels, seed):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input([4, 4, 1])
    x = keras.layers.Conv2D(channels, 3, padding="same", name="conv")(inputs)
    x = keras.layers.ReLU(name="relu")(x)
    x = keras.layers.GlobalAveragePooling2D(name="pooled")(x)
    return keras.Model(inputs, keras.layers.Dense(3, name="logits")(x))


def _distiller(loss, rate=1e-3, **options):
    model = keras.distillation.Distiller(
        _network(5, 1), _network(3, 2), [loss], student_loss_weight=0.0, **options
    )
    model.compile(
        keras.optimizers.SGD(rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    return model


def test_every_strategy_is_here_or_says_why_not():
    classes = {name: getattr(strategies, name) for name in strategies.__all__}
    named = {
        name
        for name, own in classes.items()
        if isinstance(own, type)
        and issubclass(own, Strategy)
        and "Strategy" not in name
        and not own.needs
    }
    assert named == set(_STRATEGIES)


@pytest.mark.parametrize("name", _STRATEGIES)
def test_every_strategy_trains_with_its_projections_and_comes_back(name, tmp_path):
    strategy = _STRATEGIES[name]()
    assert isinstance(strategy, Strategy | keras.Layer)
    assert isinstance(strategy, keras.distillation.DistillationLoss)
    # Its mean is over all pairs of examples, so that it has small gradients.
    model = _distiller(strategy, rate=1.0 if name == "ProbabilisticTransfer" else 1e-3)
    if name == "FactorTransfer":
        with pytest.raises(ValueError, match="a part learns from the teacher alone"):
            model.train_on_batch(_X, _LABELS)
        strategy.prepared.assign(1.0)
    logs = model.fit(_X, _LABELS, epochs=2, batch_size=6, verbose=0).history
    losses = logs["distillation_loss"]
    assert losses[1] < losses[0]
    assert {id(v) for v in strategy.trainable_variables} <= {
        id(v) for v in model.trainable_variables
    }
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    again = loaded.distillation_losses[0]
    assert again.get_config() == strategy.get_config()
    for found, expected in zip(again.weights, strategy.weights, strict=True):
        np.testing.assert_array_equal(found, expected)
    found, expected = (
        float(each.compute_loss(_X, _LABELS, training=False))
        for each in (loaded, model)
    )
    assert found == pytest.approx(expected, rel=1e-5)


def test_what_outputs_are_not_enough_for_is_refused():
    with pytest.raises(ValueError, match="DecoupledKD needs labels, which Keras'"):
        _distiller(strategies.DecoupledKD())
    with pytest.raises(ValueError, match=r"no layer 'stage/relu' at its top level"):
        _distiller(strategies.FitNet("stage/relu", "relu"))


def test_what_was_prepared_goes_into_keras():
    strategy = strategies.FactorTransfer(*_MAPS)
    teacher = _network(5, 1)
    ours = Distillation(teacher, _network(3, 2), [strategy], example=_X)
    ours.prepare([_X], epochs=1)
    theirs = _distiller(strategy)
    before = [weight.numpy() for weight in strategy.teacher_part.weights]
    theirs.run_eagerly = False
    theirs.fit(_X, _LABELS, epochs=1, batch_size=6, verbose=0)
    for found, was in zip(strategy.teacher_part.weights, before, strict=True):
        np.testing.assert_array_equal(found, was)


# === What is to be known of Keras 3.15.1 ===


def _oracle():
    given = ORACLE["logits"]
    teacher, student = (np.array(given[f"{n}_logits"]) for n in ("teacher", "student"))
    return teacher, student, given["keras_3_15_1"]


def test_its_default_loss_takes_the_divergence_of_logits():
    teacher, student, known = _oracle()
    found = keras.distillation.LogitsDistillation(4.0).compute_loss(teacher, student)
    assert float(found) == pytest.approx(known["LogitsDistillation(4.0)"], rel=1e-5)
    mended = keras.distillation.LogitsDistillation(4.0, keras.losses.KLDivergence())
    right = np.mean(outputs.kd(teacher, student, temperature=4.0).loss)
    assert float(mended.compute_loss(teacher, student)) == pytest.approx(right, 1e-4)
    ours = strategies.KD(4.0, dtype="float64").compute_loss(teacher, student)
    assert float(ours) == pytest.approx(right, rel=1e-9)


def test_it_ignores_sample_weights():
    model = _distiller(strategies.KD())
    losses = [
        model.test_on_batch(_X, _LABELS, sample_weight=weights, return_dict=True)
        for weights in (None, np.array([1.0, 0, 0, 0, 0, 0]))
    ]
    assert losses[0]["total_loss"] == pytest.approx(losses[1]["total_loss"])


def test_it_runs_the_student_twice_once_a_layer_is_named():
    for strategy, times in (
        (strategies.KD(), 1),
        (strategies.FitNet(*_MAPS), 2),
    ):
        model = _distiller(strategy)
        conv = model.student.get_layer("conv")
        calls, call = [], conv.call
        conv.call = lambda *args, c=call, n=calls, **kw: (n.append(1), c(*args, **kw))[
            1
        ]
        model.train_on_batch(_X, _LABELS)
        assert len(calls) == times


def test_it_leaves_the_teacher_frozen_and_takes_one():
    teacher = _network(5, 1)
    keras.distillation.Distiller(teacher, _network(3, 2), [strategies.KD()])
    assert not teacher.trainable
    with pytest.raises(ValueError, match="Teacher must be a keras"):
        keras.distillation.Distiller(
            [teacher, teacher], _network(3, 2), [strategies.KD()]
        )


def test_it_loses_the_optimiser_in_files(tmp_path):
    model = _distiller(strategies.KD())
    model.fit(_X, _LABELS, epochs=1, batch_size=2, verbose=0)
    assert int(model.optimizer.iterations) == 3
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    optimizer = getattr(loaded, "optimizer", None)
    assert optimizer is None or int(optimizer.iterations) == 0
    # The teacher is a part of the file.
    for found, expected in zip(
        loaded.teacher.get_weights(), model.teacher.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


class _Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = _network(3, 2)

    def call(self, x, training=False):
        return self.inner(x, training=training)


def test_it_names_no_layers_of_subclassed_models():
    loss = keras.distillation.FeatureDistillation("mse", "conv", "conv")
    with pytest.raises(ValueError, match="requires Functional or Sequential"):
        model = keras.distillation.Distiller(_network(3, 1), _Subclassed(), [loss])
        model.compile("sgd", "mse")
        model.fit(_X, np.zeros([6, 3]), verbose=0)


def test_it_names_layers_at_the_top_level_of_functional_models():
    inner = _network(3, 2)
    nested = keras.Sequential([keras.Input([4, 4, 1]), inner])
    loss = keras.distillation.FeatureDistillation("mse", "conv", "conv")
    with pytest.raises(ValueError, match="conv"):
        keras.distillation.Distiller(_network(3, 1), nested, [loss])
    # Ours find it by its path.
    name = f"{inner.name}/conv"
    model = Distillation(
        _network(3, 1), nested, strategies.SimilarityPreserving("conv", name)
    )
    assert model.names == ["similarity_preserving"]


def test_its_loss_metrics_shrink_by_the_number_of_replicas():
    data = tf.data.Dataset.from_tensor_slices((_X, _LABELS)).batch(6)
    found = []
    for name in ("default", "mirrored"):
        with distribution.strategy(name).scope():
            model = keras.distillation.Distiller(
                _network(5, 1), _network(3, 2), [strategies.KD()]
            )
            model.compile(
                keras.optimizers.SGD(0.0),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            )
        logs = model.fit(data, epochs=1, verbose=0).history
        found.append(logs["student_loss"][0])
    assert found[1] == pytest.approx(found[0] / 2, rel=1e-4)

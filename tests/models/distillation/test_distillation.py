"""Students: terms by hand, features of nested models, replicas, files, mistakes."""

from __future__ import annotations

import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distillation as strategies
from rlm_tf import distribution
from rlm_tf.models import CrossFittedTeacher, Distillation, StudentOrientedTeacher
from rlm_tf.models.recording import recording
from rlm_tf.objectives import distillation as outputs
from rlm_tf.objectives import feature_distillation as features
from rlm_tf.training import TemporalEnsemble
from tests.models.imm import imm_fixtures as fixtures

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(6, 4, 4, 1)).astype("float32")
_LABELS = _RNG.integers(0, 3, 6)


def _network(channels, seed, size=4):
    """A network with a nested model inside."""
    keras.utils.set_random_seed(seed)
    inputs = keras.Input([size, size, 1])
    inner = keras.Sequential(
        [
            keras.Input([size, size, 1]),
            keras.layers.Conv2D(channels, 3, padding="same", name="conv"),
            keras.layers.ReLU(name="relu"),
        ],
        name="stage",
    )
    pooled = keras.layers.GlobalAveragePooling2D(name="pooled")(inner(inputs))
    logits = keras.layers.Dense(3, name="logits")(pooled)
    return keras.Model(inputs, logits, name="network")


class _Subclassed(keras.Model):
    def __init__(self, inner):
        super().__init__(name="subclassed")
        self.inner = inner
        self.calls = 0

    def call(self, x, training=False):
        self.calls += 1
        return self.inner(x, training=training)


def _student(losses, teacher=None, eager=True, **options):
    teacher = _network(5, 1) if teacher is None else teacher
    model = Distillation(teacher, _network(3, 2), losses, **options)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=eager)
    return model


def _unlike_teachers():
    wider = keras.Sequential(
        [keras.Input([4, 4, 1]), keras.layers.Flatten(), keras.layers.Dense(4)]
    )
    return [_network(5, 1), wider]


# Every strategy, on features that it takes.
_PLAIN = {
    "KD": ("output", lambda: strategies.KD(3.0)),
    "ReverseKD": ("output", lambda: strategies.ReverseKD(3.0)),
    "GeneralisedJSD": ("output", lambda: strategies.GeneralisedJSD(0.3, 2.0)),
    "StandardisedKD": ("output", lambda: strategies.StandardisedKD()),
    "DIST": ("output", lambda: strategies.DIST(1.0, 2.0, 3.0)),
    "DecoupledKD": ("output", lambda: strategies.DecoupledKD(1.0, 2.0, 3.0)),
    "AttentionTransfer": ("maps", strategies.AttentionTransfer),
    "NeuronSelectivity": ("maps", strategies.NeuronSelectivity),
    "SimilarityPreserving": ("maps", strategies.SimilarityPreserving),
    "RelationalKD": ("vectors", strategies.RelationalKD),
    "ProbabilisticTransfer": ("vectors", strategies.ProbabilisticTransfer),
    "FitNet": ("maps", strategies.FitNet),
    "CorrelationCongruence": (
        "vectors",
        lambda *names: strategies.CorrelationCongruence(*names, width=4),
    ),
    "VariationalInformation": ("maps", strategies.VariationalInformation),
    "ActivationBoundary": ("maps", strategies.ActivationBoundary),
}
_PLACES = {
    "output": (),
    "maps": ("stage/relu", "stage/relu"),
    "vectors": ("pooled", "pooled"),
}


def _make(name):
    kind, make = _PLAIN[name]
    return make(*_PLACES[kind])


# === Terms ===


def test_terms_by_hand():
    teacher = _network(5, 1)
    model = _student(
        [
            (strategies.KD(4.0), 0.5),
            strategies.AttentionTransfer("stage/relu", "stage/relu"),
            (strategies.KD(1.0), 0.0),
        ],
        teacher,
        student_weight=0.25,
    )
    weights = np.array([1, 2, 0, 1, 0.5, 1], "float32")
    terms = model.objective_terms(_X, _LABELS, weights, training=True)
    assert list(terms) == ["cross_entropy", "kd", "attention_transfer", "kd_2"]
    t, s = teacher(_X), model.student(_X)
    maps = [net.get_layer("stage")(_X) for net in (teacher, model.student)]
    expected = {
        "cross_entropy": keras.losses.sparse_categorical_crossentropy(
            _LABELS, s, from_logits=True
        ),
        "kd": outputs.kd(t, s, temperature=4.0).loss,
        "attention_transfer": features.attention(*maps).loss,
        "kd_2": outputs.kd(t, s, temperature=1.0).loss,
    }
    for name, loss in expected.items():
        np.testing.assert_allclose(terms[name].loss, loss, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(terms[name].weights, weights)
    logs = model.train_on_batch(_X, _LABELS, weights, return_dict=True)
    total = 0.25 * logs["cross_entropy"] + 0.5 * logs["kd"] + logs["attention_transfer"]
    assert logs["loss"] == pytest.approx(total, rel=1e-6)
    result = model.evaluate(_X, _LABELS, verbose=0, return_dict=True)
    assert set(result) == {"loss", "cross_entropy", "accuracy"}


@pytest.mark.parametrize("name", _PLAIN)
def test_every_strategy_trains_and_the_teacher_stays(name):
    teacher = _network(5, 1)
    before = [weight.numpy() for weight in teacher.weights]
    # That of AB is a sum.
    weight = 1e-3 if name == "ActivationBoundary" else 1.0
    model = _student([(_make(name), weight)], teacher, student_weight=0.0)
    strategy = model.strategies[0]
    parts = [*model.student.trainable_variables, *strategy.trainable_variables]
    assert {id(v) for v in model.trainable_variables} == {id(v) for v in parts}
    was = [weight.numpy() for weight in strategy.trainable_variables]
    logs = model.fit(_X, _LABELS, epochs=6, batch_size=6, verbose=0).history
    (own,) = model.names
    assert logs[own][-1] < logs[own][0]
    for found, expected in zip(strategy.trainable_variables, was, strict=True):
        assert not np.array_equal(found, expected) or "bias" in found.path, found.path
    assert teacher.trainable and len(teacher.trainable_variables) == 4
    for found, expected in zip(teacher.weights, before, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", _PLAIN)
def test_networks_of_half_precision(name, monkeypatch):
    # Sums of squares of such features are beyond float16.
    monkeypatch.setattr(sys.modules[__name__], "_X", 300 * _X)
    single = _student([(_make(name), 1.0)], _network(5, 1), student_weight=0.0)
    keras.config.set_dtype_policy("mixed_float16")
    try:
        half = _student([(_make(name), 1.0)], _network(5, 1), student_weight=0.0)
        loaded = type(half.strategies[0]).from_config(half.strategies[0].get_config())
    finally:
        keras.config.set_dtype_policy("float32")
    assert half.student.compute_dtype == "float16" and loaded.dtype == "float32"
    for found, other in zip(half.weights, single.weights, strict=True):
        found.assign(other)
    terms = [
        model.objective_terms(_X, _LABELS, None, training=True)[model.names[0]]
        for model in (half, single)
    ]
    assert terms[0].loss.dtype == tf.float32
    np.testing.assert_allclose(*(each.loss for each in terms), rtol=0.05, atol=0.05)
    half.train_on_batch(_X, _LABELS)
    assert all(np.isfinite(weight).all() for weight in half.trainable_variables)


def test_without_a_weight_of_labels_there_need_be_none():
    model = _student(strategies.KD(2.0), _network(5, 1), student_weight=0.0)
    data = tf.data.Dataset.from_tensor_slices((_X,)).batch(6)
    logs = model.fit(data, epochs=2, verbose=0).history
    assert set(logs) == {"loss", "kd"} and logs["kd"][1] < logs["kd"][0]
    assert logs["loss"] == pytest.approx(logs["kd"])
    # Labels that there are, are measured, not learnt.
    found = model.evaluate(_X, _LABELS, verbose=0, return_dict=True)
    assert set(found) == {"loss", "cross_entropy", "accuracy"}
    assert found["loss"] == found["cross_entropy"] > 0
    logs = model.fit(_X, _LABELS, verbose=0).history
    assert set(logs) == {"loss", "kd", "accuracy"}
    needing = _student(_make("DecoupledKD"), _network(5, 1), student_weight=0.0)
    with pytest.raises(ValueError, match="DecoupledKD needs labels"):
        needing.fit(data, verbose=0)
    learning = _student(strategies.KD(2.0), _network(5, 1))
    with pytest.raises(ValueError, match="no labels"):
        learning.fit(data, verbose=0)


def test_classifiers_of_two_inputs_with_ids_and_without():
    def network(width):
        inputs = [keras.Input([4]), keras.Input([3])]
        hidden = keras.layers.Dense(width)(keras.layers.Concatenate()(inputs))
        return keras.Model(inputs, keras.layers.Dense(3)(hidden))

    rng = np.random.default_rng(0)
    x = tuple(rng.normal(size=[6, size]).astype("float32") for size in (4, 3))
    labels, ids = np.arange(6, dtype=np.int32) % 3, np.arange(6, dtype=np.int32)
    model = Distillation(network(4), network(2), strategies.KD(1.0))
    model.compile("sgd", run_eagerly=True)
    found = [model.train_on_batch(each, labels) for each in (x, (x, ids))]
    assert np.isfinite(found).all()
    teacher = StudentOrientedTeacher(
        network(4), epochs=2, ensemble=TemporalEnsemble(6, 3)
    )
    teacher.compile("sgd", run_eagerly=True)
    assert np.isfinite(teacher.train_on_batch((x, ids), labels)).all()
    assert np.isfinite(teacher.test_on_batch(x, labels)).all()
    with pytest.raises(ValueError, match="no ids; expected batches"):
        teacher.train_on_batch(x, labels)


def test_several_teachers_speak_by_their_mean():
    teachers = [_network(5, 1), _network(4, 3)]
    model = _student(strategies.KD(2.0), teachers)
    mean = sum(np.asarray(tf.nn.softmax(each(_X))) for each in teachers) / 2
    expected = outputs.kd(np.log(mean), model.student(_X), temperature=2.0).loss
    terms = model.objective_terms(_X, _LABELS, None, training=True)
    np.testing.assert_allclose(terms["kd"].loss, expected, atol=1e-6)


def test_each_network_runs_once_and_is_left_as_it_was():
    teacher, student = _Subclassed(_network(5, 1)), _Subclassed(_network(3, 2))
    names = ("network/stage/conv", "network/stage/conv")
    for network in (teacher, student):
        network(_X)
    model = Distillation(
        teacher,
        student,
        [strategies.FitNet(*names), strategies.SimilarityPreserving(*names)],
        example=_X[:2],
    )
    calls = teacher.calls, student.calls
    model.objective_terms(_X, _LABELS, None, training=True)
    assert (teacher.calls, student.calls) == (calls[0] + 1, calls[1] + 1)
    conv = student.inner.get_layer("stage").get_layer("conv")
    assert "call" not in vars(conv)


def test_records_of_one_layer_may_overlap():
    layer = keras.layers.Dense(2)
    with recording({"first": layer}) as first:
        one = layer(np.ones([1, 3]))
        with recording({"second": layer}) as second:
            two = layer(np.zeros([1, 3]))
        three = layer(np.full([1, 3], 2.0))
    np.testing.assert_array_equal(second["second"], two)
    np.testing.assert_array_equal(first["first"], three)
    assert not np.array_equal(one, three) and "call" not in vars(layer)


# === Replicas and files ===


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("KD", "FitNet", "ActivationBoundary") or _make(name).across
        else pytest.param(name, marks=pytest.mark.landing)
        for name in _PLAIN
    ],
)
def test_two_replicas_equal_one(name):
    alone = _student([_make(name)], eager=False)
    with distribution.strategy("mirrored").scope():
        shared = _student([_make(name)], eager=False)
    # Of what is drawn at first, the same.
    shared.set_weights(alone.get_weights())
    data = tf.data.Dataset.from_tensor_slices((_X, _LABELS)).batch(6)
    logs = [m.fit(data, epochs=2, verbose=0).history for m in (alone, shared)]
    for found, expected in zip(shared.get_weights(), alone.get_weights(), strict=True):
        # The loss of AB is a sum, of some hundreds, whose rounding is larger.
        error = 2e-5 if name == "ActivationBoundary" else 1e-6
        np.testing.assert_allclose(found, expected, atol=error)
    for key, values in logs[0].items():
        np.testing.assert_allclose(
            logs[1][key], values, rtol=1e-6, atol=1e-5, err_msg=key
        )


def test_a_subclassed_student_has_ids_beside_x():
    model = Distillation(
        _network(5, 1), _Subclassed(_network(3, 2)), strategies.KD(), example=_X
    )
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    data = tf.data.Dataset.from_tensors(((_X, np.arange(6)), _LABELS))
    found = model.fit(data, verbose=0).history
    other = _student(strategies.KD()).fit(data, verbose=0).history
    assert found["kd"] == pytest.approx(other["kd"])


def _ends_in_softmax(seed):
    inner = _network(3, seed)
    return keras.Model(inner.inputs, keras.layers.Softmax()(inner.outputs[0]))


def test_probabilities_are_no_logits():
    with pytest.raises(ValueError, match="teacher: outputs must be logits, not prob"):
        _student(strategies.KD(), _ends_in_softmax(1)).fit(_X, _LABELS, verbose=0)
    for models in ([_network(5, 1), _ends_in_softmax(1)],):
        with pytest.raises(ValueError, match="teacher: outputs must be logits"):
            _student(strategies.KD(), models).fit(_X, _LABELS, verbose=0)
    model = Distillation(_network(5, 1), _ends_in_softmax(2), strategies.KD())
    model.compile("sgd")
    with pytest.raises(ValueError, match="Distillation: outputs must be logits, not"):
        model.fit(_X, _LABELS, verbose=0)
    # Few rows may sum to 1 by chance.
    model.evaluate(_X[:2], _LABELS[:2], verbose=0)


def test_a_teacher_that_has_diverged_is_named():
    teacher = _network(5, 1)
    weight = teacher.trainable_variables[0]
    weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(ValueError, match="has a weight that is no finite number"):
        _student(strategies.KD(), teacher).fit(_X, _LABELS, verbose=0)


def test_a_file_has_student_and_projections_and_no_teacher(tmp_path):
    model = _student([(strategies.FitNet("stage/relu", "stage/relu"), 2.0)])
    model.fit(_X, _LABELS, epochs=1, verbose=0)
    model.save(tmp_path / "student.keras")
    loaded = keras.saving.load_model(tmp_path / "student.keras")
    np.testing.assert_array_equal(loaded(_X), model(_X))
    assert loaded.teacher is None and loaded.coefficients == [2.0]
    for found, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="no teacher"):
        loaded.fit(_X, _LABELS, verbose=0)
    loaded.set_teacher(model.teacher)
    results = [
        each.train_on_batch(_X, _LABELS, return_dict=True) for each in (loaded, model)
    ]
    assert results[0] == pytest.approx(results[1], rel=1e-5)


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _student([]), "`losses` must have one strategy at least"),
        (lambda: _student(["kd"]), r"`losses` must hold strategies .*found .kd."),
        (lambda: _student("kd"), r"`losses` must hold strategies .*found .kd."),
        (
            lambda: _student(keras.distillation.LogitsDistillation(4.0)),
            r"KD\(temperature\) is what LogitsDistillation is here",
        ),
        (
            lambda: _student(strategies.KD(), "a"),
            "`teacher` must be .*, found str; lan",
        ),
        (
            lambda: _student(strategies.KD(), fixtures.restricted_model()),
            "found the restricted model KneserNey; language models, .* LanguageDist",
        ),
        (
            lambda: Distillation(
                _network(5, 1), fixtures.language_model(), strategies.KD()
            ),
            "`student` must be a Keras classifier, found the language model Recurr",
        ),
        (lambda: _student([(strategies.KD(), -1.0)]), "`losses` must be finite"),
        (
            lambda: _student(strategies.FitNet("stage/rel", "stage/relu")),
            r"teacher: .* has no layer 'stage/rel'; the nearest: stage/relu",
        ),
        (lambda: strategies.FitNet("pooled"), "name a layer of both or of none"),
        (
            lambda: _student(
                strategies.RelationalKD("pooled", "pooled"),
                [_network(5, 1), _network(5, 1)],
            ),
            "the outputs are averaged; 'pooled' is a layer",
        ),
        (lambda: _student(strategies.KD(), []), "`teacher` is an empty list"),
        (
            lambda: _student(strategies.KD(), _unlike_teachers()),
            "teachers must have the same classes; expected 3, .* found 4 of teacher 2",
        ),
        (
            lambda: CrossFittedTeacher(_unlike_teachers(), [0, 1])(_X),
            "CrossFittedTeacher: teachers must have the same classes; expected 3",
        ),
        (
            lambda: Distillation(
                _network(5, 1), _Subclassed(_network(3, 2)), strategies.KD()
            ),
            "does not say what its inputs are; give `example=`",
        ),
        (
            lambda: _student(strategies.KD()).fit(_X, _LABELS + 3, verbose=0),
            r"labels must be in \[0, 3\), found",
        ),
        (lambda: strategies.KD(0.0), "`temperature` must be finite and positive"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Parts that learn from the teacher alone: preparation, rotated views, files."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distillation as strategies
from rlm_tf import distribution
from rlm_tf.models import Distillation
from rlm_tf.objectives import distillation as outputs
from rlm_tf.objectives import feature_distillation as features
from rlm_tf.training import ResumableBatches

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(6, 4, 4, 2)).astype("float32")
_LABELS = _RNG.integers(0, 3, 6)


def _network(channels, seed):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input([4, 4, 2])
    x = keras.layers.Conv2D(channels, 3, padding="same", name="conv")(inputs)
    x = keras.layers.ReLU(name="relu")(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(channels, name="pooled")(x)
    return keras.Model(inputs, keras.layers.Dense(3, name="logits")(x))


def _student(strategy, **options):
    keras.utils.set_random_seed(5)
    model = Distillation(_network(6, 1), _network(4, 2), strategy, **options)
    model.compile(keras.optimizers.SGD(0.05))
    return model


def _factors(**options):
    return strategies.FactorTransfer("relu", "relu", **options)


def _views(**options):
    return strategies.SelfSupervised("pooled", "pooled", **options)


def _values(layer):
    return [np.array(weight) for weight in layer.weights]


@pytest.mark.parametrize("make", [_factors, _views])
def test_the_part_learns_first_and_stays_then(make):
    model = _student(make())
    (strategy,) = model.strategies
    with pytest.raises(ValueError, match=r"`prepare\(batches\)` before fit\(\)"):
        model.fit(_X, _LABELS, verbose=0)
    teacher = _values(model.teacher)
    student = _values(model.student)
    before = _values(strategy.teacher_part)
    history = model.prepare([(_X, _LABELS), (_X[:3], _LABELS[:3])], epochs=8)
    (losses,) = history.values()
    assert len(losses) == 8 and losses[-1] < losses[0]
    for kept, now in ((teacher, model.teacher), (student, model.student)):
        for old, value in zip(kept, _values(now), strict=True):
            np.testing.assert_array_equal(old, value)
    prepared = _values(strategy.teacher_part)
    changed = [not np.array_equal(*pair) for pair in zip(before, prepared, strict=True)]
    assert all(changed)
    with pytest.raises(ValueError, match=r"is prepared"):
        model.prepare([(_X, _LABELS)], epochs=1)
    logs = model.fit(_X, _LABELS, epochs=3, batch_size=6, verbose=0).history
    (own,) = model.names
    assert logs[own][-1] < logs[own][0]
    for old, value in zip(prepared, _values(strategy.teacher_part), strict=True):
        np.testing.assert_array_equal(old, value)
    assert strategy.trainable_variables


def test_factors_by_hand():
    model = _student(_factors(share=0.5))
    (strategy,) = model.strategies
    (strategy.prepared.assign(1.0),)
    maps = [
        keras.Model(net.inputs, net.get_layer("relu").output)(_X)
        for net in (model.teacher, model.student)
    ]
    encoder = strategy.paraphraser.layers[0]
    assert encoder(maps[0]).shape[-1] == strategy.translator(maps[1]).shape[-1] == 3
    expected = features.factor(encoder(maps[0]), strategy.translator(maps[1])).loss
    terms = model.objective_terms(_X, _LABELS, None, training=True)
    np.testing.assert_allclose(terms["factor_transfer"].loss, expected, atol=1e-6)
    loss = strategy.teacher_loss(maps[0], None)
    expected = np.mean((np.asarray(strategy.paraphraser(maps[0])) - maps[0]) ** 2)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_views_by_hand():
    model = _student(
        [(strategies.KD(4.0), 0.5), (_views(rotated_weight=0.27), 10.0)],
        student_weight=0.5,
    )
    strategy = model.strategies[1]
    turned = [np.rot90(_X, k, axes=(1, 2)) for k in (1, 2, 3)]
    plain, seen, logits = [], [], []
    for net, head in (
        (model.teacher, strategy.of_teacher),
        (model.student, strategy.of_student),
    ):
        pooled = keras.Model(net.inputs, net.get_layer("pooled").output)
        plain.append(head(pooled(_X)))
        seen.append(tf.stack([head(pooled(each)) for each in turned], axis=1))
        logits.append(np.stack([net(each) for each in turned], axis=1))
    found = features.self_supervised(plain[0], seen[0], plain[1], seen[1])
    published = np.sum(found.loss * found.extra.kept) / np.sum(found.extra.kept)
    rotated = outputs.kd(*logits, temperature=4.0).loss
    terms = model.objective_terms(_X, _LABELS, None, training=True)
    expected = published + 0.27 * np.mean(rotated)
    loss = terms["self_supervised"].loss
    assert loss.shape == [6]
    assert float(tf.reduce_mean(loss)) == pytest.approx(expected, rel=1e-5)
    # Images alone are what the others see.
    kd = outputs.kd(model.teacher(_X), model.student(_X), temperature=4.0).loss
    np.testing.assert_allclose(terms["kd"].loss, kd, atol=1e-5)
    assert terms["cross_entropy"].loss.shape == [6]
    evaluated = model.evaluate(_X, _LABELS, verbose=0, return_dict=True)
    assert set(evaluated) == {"loss", "cross_entropy", "accuracy"}


def test_a_head_learns_to_tell_images():
    model = _student(_views())
    strategy = model.strategies[0]
    losses = model.prepare([_X], epochs=60)["self_supervised"]
    # Six images: a guess has 1.79 nats, and six cosines allow no less than 0.92.
    assert losses[0] > 1.4 and 0.91 < losses[-1] < 1.25
    assert strategy.preparing_epochs == 60 and _factors().preparing_epochs == 30


def test_passes_of_resumable_batches_are_epochs():
    seen = []

    def elements(epoch, start):
        def image(number):
            seen.append(int(number))
            return _X * float(number + 1)

        wrapped = tf.py_function(image, [epoch], tf.float32)
        return tf.data.Dataset.from_tensors(tf.ensure_shape(wrapped, _X.shape))

    model = _student(_views())
    model.prepare(ResumableBatches(elements, steps=1), epochs=3)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("make", [_factors, _views])
def test_files_keep_what_was_prepared(make, tmp_path):
    model = _student(make())
    model.prepare([_X], epochs=1)
    model.save(tmp_path / "student.keras")
    loaded = keras.saving.load_model(tmp_path / "student.keras")
    loaded.set_teacher(model.teacher)
    results = [
        each.train_on_batch(_X, _LABELS, return_dict=True) for each in (loaded, model)
    ]
    assert results[0] == pytest.approx(results[1], rel=1e-5)
    loaded.fit(_X, _LABELS, verbose=0)


@pytest.mark.landing
@pytest.mark.parametrize("make", [_factors, _views])
def test_two_replicas_equal_one(make):
    alone = _student(make())
    alone.prepare([_X], epochs=1)
    with distribution.strategy("mirrored").scope():
        shared = _student(make())
    shared.set_weights(alone.get_weights())
    data = tf.data.Dataset.from_tensor_slices((_X, _LABELS)).batch(6)
    logs = [m.fit(data, epochs=2, verbose=0).history for m in (alone, shared)]
    for found, expected in zip(shared.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    for key, values in logs[0].items():
        np.testing.assert_allclose(logs[1][key], values, atol=1e-5, err_msg=key)


def test_mistakes():
    with pytest.raises(ValueError, match=r"features of the teacher must be maps"):
        _student(strategies.FactorTransfer("pooled", "relu"))
    with pytest.raises(ValueError, match=r"features must be vectors \[B, D\]"):
        _student(strategies.SelfSupervised("relu", "pooled"))
    with pytest.raises(ValueError, match=r"no strategy learns from the teacher"):
        _student(strategies.KD()).prepare([_X])
    with pytest.raises(ValueError, match=r"`batches` are empty"):
        _student(_factors()).prepare([])
    with pytest.raises(ValueError, match=r"square images \[B, H, H, C\], found shape"):
        _student(_views()).prepare([_X[:, :3]])
    with pytest.raises(ValueError, match=r"`share` must"):
        _factors(share=0.0)

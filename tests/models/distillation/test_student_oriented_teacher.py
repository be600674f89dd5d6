"""Teachers for students: terms by hand, epochs by loops, kills, replicas, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.models import StudentOrientedTeacher
from rlm_tf.training import (
    CorrectnessHistory,
    ExactResume,
    ResumableBatches,
    TemporalEnsemble,
)

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(8, 3)).astype("float32")
_LABELS = _RNG.integers(0, 2, 8)
_IDS = np.arange(8)


def _classifier():
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [keras.Input([3]), keras.layers.Dense(4, "relu"), keras.layers.Dense(2)]
    )


def _teacher(path=None, variant="thesis", eager=True, **options):
    options = {"lipschitz": 0.1, "consistency": 2.0, "epochs": 3} | options
    ensemble = TemporalEnsemble(8, 2, path=path, variant=variant)
    teacher = StudentOrientedTeacher(
        _classifier(), ensemble=ensemble, variant=variant, **options
    )
    teacher.compile(keras.optimizers.SGD(0.5), run_eagerly=eager)
    return teacher


def _dataset(batch=4):
    data = tf.data.Dataset.from_tensor_slices(((_X, _IDS), _LABELS))
    return data.batch(batch)


def _softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# === Terms ===


@pytest.mark.parametrize("variant", ["thesis", "authors"])
def test_epochs_by_loops(variant):
    teacher = _teacher(variant=variant, ramp="cosine")
    weights = [w.astype(float) for w in teacher.get_weights()]
    means, counts = np.zeros([8, 2]), np.zeros(8)
    logs = teacher.fit(_dataset(), epochs=3, shuffle=False, verbose=0).history
    for epoch in range(3):
        shown = []
        said = np.zeros([8, 2])
        rise = np.cos((1 - (epoch + 1) / 3) * np.pi / 2)
        for rows in (slice(0, 4), slice(4, 8)):
            x, y = _X[rows].astype(float), _LABELS[rows]
            hidden = np.maximum(x @ weights[0] + weights[1], 0)
            p = _softmax(hidden @ weights[2] + weights[3])
            said[rows] = p
            sums = [np.abs(weights[i]).sum(axis=1) for i in (0, 2)]
            distance = ((p - means[rows]) ** 2).sum(1) if epoch else np.zeros(4)
            cross = -np.log(p[np.arange(4), y])
            shown.append([cross.mean(), sum(s.max() for s in sums), distance.mean()])
            slope = (p - np.eye(2)[y]) / 4
            if epoch:
                inner = 2 * (p - means[rows])
                own = p * (inner - (p * inner).sum(1, keepdims=True))
                slope += 2.0 * rise * own / 4
            back = (slope @ weights[2].T) * (hidden > 0)
            slopes = [x.T @ back, back.sum(0), hidden.T @ slope, slope.sum(0)]
            for i, total in zip((0, 2), sums, strict=True):
                top = total.argmax()
                slopes[i][top] += 0.1 * np.sign(weights[i][top])
            weights = [w - 0.5 * g for w, g in zip(weights, slopes, strict=True)]
        share = 1 if variant == "thesis" or epoch else 2
        counts += share
        means += (said - means) * (share / counts)[:, np.newaxis]
        for name, value in zip(
            ("cross_entropy", "lipschitz", "consistency"),
            np.mean(shown, axis=0),
            strict=True,
        ):
            assert logs[name][epoch] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    for found, expected in zip(teacher.get_weights(), weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    found = teacher.ensemble.targets(_IDS)
    np.testing.assert_allclose(found.means, means, atol=1e-5)
    np.testing.assert_array_equal(found.counts, counts)
    # Evaluation has the labels alone, with ids or without.
    for x in (_X, (_X, _IDS)):
        result = teacher.evaluate(x, _LABELS, verbose=0, return_dict=True)
        assert set(result) == {"loss", "cross_entropy", "accuracy"}
        assert result["loss"] == pytest.approx(result["cross_entropy"])
    np.testing.assert_array_equal(teacher(_X), teacher.model(_X))


def test_terms_of_weight_zero_are_left_out():
    teacher = StudentOrientedTeacher(
        _classifier(), lipschitz=0.0, consistency=0.0, epochs=1
    )
    teacher.compile(keras.optimizers.SGD(0.1))
    logs = teacher.fit(_X, _LABELS, epochs=1, verbose=0).history
    assert set(logs) == {"loss", "cross_entropy", "accuracy"}


def test_sample_weights_count_in_both_terms():
    teacher = _teacher(lipschitz=0.0)
    teacher.fit(_dataset(8), epochs=1, verbose=0)
    teacher.ensemble.end_epoch()
    weights = np.array([1.0, 0, 0, 2, 0, 0, 0, 0], "float32")
    terms = teacher.objective_terms((_X, _IDS), _LABELS, weights, training=True)
    for name in ("cross_entropy", "consistency"):
        np.testing.assert_array_equal(terms[name].weights, weights)


# === Kills and replicas ===


class _Kill(keras.callbacks.Callback):
    def __init__(self, step):
        super().__init__()
        self.step, self.seen = step, 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["memory", "files"])
@pytest.mark.parametrize("step", [3, 4, 7])
def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path, where, step):
    def run(name, kill=None):
        teacher = _teacher(None if where == "memory" else tmp_path / f"{name}-means")
        data = ResumableBatches(_dataset(2))
        saver = ExactResume(tmp_path / name, data, every_steps=1)
        callbacks = [saver] if kill is None else [saver, _Kill(kill)]
        teacher.fit(
            data.dataset, epochs=3, shuffle=False, verbose=0, callbacks=callbacks
        )
        return teacher

    whole = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("killed", step)
    again = run("killed")
    for found, expected in zip(again.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(
        again.ensemble.targets(_IDS), whole.ensemble.targets(_IDS), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_two_replicas_equal_one():
    alone = _teacher(eager=False)
    alone.fit(_dataset(), epochs=3, shuffle=False, verbose=0)
    with distribution.strategy("mirrored").scope():
        shared = _teacher(eager=False)
    shared.fit(_dataset(), epochs=3, shuffle=False, verbose=0)
    for found, expected in zip(shared.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(
        shared.ensemble.targets(_IDS).means,
        alone.ensemble.targets(_IDS).means,
        atol=1e-6,
    )


# === Files, mistakes ===


def test_a_file_has_the_model_and_not_what_was_said(tmp_path):
    teacher = _teacher(ramp="cyclic", norm="inf")
    teacher.fit(_dataset(), epochs=1, verbose=0)
    teacher.save(tmp_path / "teacher.keras")
    loaded = keras.saving.load_model(tmp_path / "teacher.keras")
    np.testing.assert_allclose(loaded(_X), teacher(_X), atol=1e-6)
    assert (loaded.ramp, loaded.norm, loaded.ensemble) == ("cyclic", "inf", None)
    with pytest.raises(ValueError, match=r"no ensemble. A loaded model has none"):
        loaded.fit(_dataset(), epochs=1, verbose=0)
    loaded.ensemble = TemporalEnsemble(8, 3)
    with pytest.raises(ValueError, match="ensemble is of 3 classes, the model has 2"):
        loaded.fit(_dataset(), epochs=1, verbose=0)
    loaded.ensemble = TemporalEnsemble(8, 2)
    loaded.fit(_dataset(), epochs=1, verbose=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _teacher(ramp="square"), "`ramp` must be one of linear"),
        (lambda: _teacher(epochs=0), "`epochs` must be an integer >= 1"),
        (lambda: _teacher(lipschitz=-1.0), "`lipschitz` must"),
        (
            lambda: StudentOrientedTeacher(
                _classifier(),
                epochs=1,
                ensemble=TemporalEnsemble(8, 2),
                variant="authors",
            ),
            "`ensemble` has variant 'thesis', expected 'authors'",
        ),
        (
            lambda: _teacher().fit(_X, _LABELS, verbose=0),
            r"no ids; expected batches \(\(x, ids\), labels\)",
        ),
        (
            lambda: _teacher().fit((_X, _IDS), _LABELS + 1, verbose=0),
            r"labels must be in \[0, 2\), found 2",
        ),
        (
            lambda: _teacher().fit((_X, _IDS + 1), _LABELS, verbose=0),
            r"`ids` must lie in \[0, 8\), found 8",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# === Rivals ===


def test_rivals_by_hand():
    history = CorrectnessHistory(8)
    history.update(_IDS, np.arange(8) % 3 > 0)
    history.end_epoch()
    teacher = StudentOrientedTeacher(
        _classifier(),
        lipschitz=0.0,
        consistency=0.0,
        epochs=2,
        l1=0.01,
        label_smoothing=0.2,
        correctness_ranking=0.5,
        correctness=history,
    )
    teacher.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    logits = teacher.model(_X).numpy().astype(float)
    p = _softmax(logits)
    rates = (np.arange(8) % 3 > 0).astype(float)
    top = p.max(axis=1)
    gap = rates - np.roll(rates, -1)
    sign = np.where(gap > 0, 1, -1)
    ranking = np.maximum(0, -sign * (top - np.roll(top, -1)) + np.abs(gap)).mean()
    targets = 0.8 * np.eye(2)[_LABELS] + 0.1
    cross = -(targets * np.log(p)).sum(axis=1).mean()
    l1 = sum(np.abs(w).sum() for w in teacher.get_weights() if w.ndim > 1)
    logs = teacher.train_on_batch((_X, _IDS), _LABELS, return_dict=True)
    assert logs["cross_entropy"] == pytest.approx(cross, rel=1e-5)
    assert logs["l1"] == pytest.approx(l1, rel=1e-5)
    assert logs["correctness_ranking"] == pytest.approx(ranking, rel=1e-4)
    total = cross + 0.01 * l1 + 0.5 * ranking
    assert logs["loss"] == pytest.approx(total, rel=1e-5)
    # Not smoothed.
    plain = -np.log(p[np.arange(8), _LABELS]).mean()
    found = teacher.evaluate(_X, _LABELS, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(plain, rel=1e-5)
    history.end_epoch()
    right = rates + (p.argmax(axis=1) == _LABELS)
    np.testing.assert_allclose(history.rates(_IDS), right / 2)


def test_labels_may_be_probabilities():
    teacher = _teacher(lipschitz=0.0, consistency=0.0)
    probs = np.random.default_rng(1).dirichlet([1, 1], 8).astype("float32")
    logs = teacher.test_on_batch(_X, probs, return_dict=True)
    said = _softmax(teacher.model(_X).numpy().astype(float))
    expected = -(probs * np.log(said)).sum(axis=1).mean()
    assert logs["cross_entropy"] == pytest.approx(expected, rel=1e-5)
    accuracy = (said.argmax(axis=1) == probs.argmax(axis=1)).mean()
    assert logs["accuracy"] == pytest.approx(accuracy)


def test_the_history_of_a_resumed_run_is_that_of_one(tmp_path):
    def run(folder, epochs, resume=False):
        history = CorrectnessHistory(8)
        teacher = StudentOrientedTeacher(
            _classifier(),
            lipschitz=0.0,
            consistency=0.0,
            epochs=3,
            correctness_ranking=1.0,
            correctness=history,
        )
        teacher.compile(keras.optimizers.SGD(0.5))
        data = ResumableBatches(_dataset())
        keep = ExactResume(tmp_path / folder, data)
        teacher.fit(
            data.dataset, epochs=epochs, shuffle=False, verbose=0, callbacks=[keep]
        )
        return teacher.get_weights(), history.rates(_IDS).numpy()

    expected = run("whole", 3)
    run("halted", 2)
    found = run("halted", 3)
    np.testing.assert_array_equal(found[1], expected[1])
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_mistakes_of_rivals():
    with pytest.raises(
        ValueError, match=r"`correctness` has variant 'authors', expected"
    ):
        _teacher(correctness=CorrectnessHistory(8, variant="authors"))
    with pytest.raises(
        ValueError, match=r"no correctness history\. A loaded model has none"
    ):
        _teacher(correctness_ranking=1.0).train_on_batch((_X, _IDS), _LABELS)
    with pytest.raises(ValueError, match=r"`label_smoothing` must"):
        _teacher(label_smoothing=1.5)

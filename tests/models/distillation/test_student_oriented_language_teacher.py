"""Language models as teachers: terms by hand over epochs, resuming, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.data import PlacedBatches
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    StudentOrientedLanguageTeacher,
    lipschitz_constants,
)
from rlm_tf.training import ExactResume, ResumableBatches, TokenEnsemble
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference

_V, _N = fixtures.VOCABULARY, 60
_WORDS = fixtures.stream(_N)


def _data():
    return PlacedBatches(fixtures.batches(_WORDS, 3, 10))


def _teacher(model=None, eager=True, **options):
    model = fixtures.language_model() if model is None else model
    options = {"lipschitz": 0.01, "consistency": 2.0, "epochs": 2} | options
    ensemble = options.pop("ensemble", TokenEnsemble(_N, _V))
    teacher = StudentOrientedLanguageTeacher(model, ensemble=ensemble, **options)
    teacher.compile(keras.optimizers.SGD(0.0), run_eagerly=eager)
    return teacher


def test_terms_by_hand_over_epochs():
    teacher = _teacher()
    data = ResumableBatches(_data())
    element = next(iter(data.dataset))
    ((tokens, _), places), targets, weights = element
    first = teacher.objective_terms(*element, training=True)
    assert list(first) == ["nll", "lipschitz", "consistency"]
    total = sum(map(float, lipschitz_constants(teacher.model).values()))
    assert float(first["lipschitz"].loss[0]) == pytest.approx(total, rel=1e-6)
    # Nothing is known of any token yet.
    assert not np.any(first["consistency"].weights)
    teacher.ensemble.end_epoch()
    said = reference.softmax(teacher.model(tokens).numpy().astype(float))
    teacher.model.set_weights([0.5 * w for w in teacher.model.get_weights()])
    second = teacher.objective_terms(*element, training=True)
    now = reference.softmax(teacher.model(tokens).numpy().astype(float))
    expected = ((now - said) ** 2).sum(axis=-1).ravel()
    np.testing.assert_allclose(second["consistency"].loss, expected, atol=1e-5)
    np.testing.assert_array_equal(second["consistency"].weights, np.ravel(weights))
    assert set(_WORDS[places[weights > 0]] == targets[weights > 0].numpy()) == {True}
    logs = teacher.evaluate(data.dataset, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "nll", "perplexity"}


def test_few_words_leave_out_the_rest():
    teacher = _teacher(ensemble=TokenEnsemble(_N, 2))
    element = next(iter(_data().dataset()))
    teacher.objective_terms(*element, training=True)
    teacher.ensemble.end_epoch()
    ((tokens, _), _), *_ = element
    said = reference.softmax(teacher.model(tokens).numpy().astype(float))
    kept = np.where(said >= np.sort(said, axis=-1)[..., -2:-1], said, 0)
    found = teacher.objective_terms(*element, training=True)["consistency"]
    expected = ((said - kept) ** 2).sum(axis=-1).ravel()
    np.testing.assert_allclose(found.loss, expected, atol=1e-6)


def test_its_weight_rises_and_a_resumed_run_is_the_same(tmp_path):
    def run(folder, epochs):
        teacher = _teacher(fixtures.language_model(dropout=0.3), eager=False, epochs=3)
        teacher.compile(keras.optimizers.SGD(0.3))
        data = ResumableBatches(_data())
        saver = ExactResume(tmp_path / folder, data)
        options = {"epochs": epochs, "shuffle": False, "callbacks": [saver]}
        logs = teacher.fit(data.dataset, verbose=0, **options).history
        return fixtures.flat_weights(teacher), teacher.ensemble, logs

    weights, ensemble, logs = run("whole", 3)
    assert logs["consistency"][0] == 0 < logs["consistency"][1]
    run("halted", 2)
    found, again, _ = run("halted", 3)
    np.testing.assert_array_equal(found, weights)
    for one, other in zip(
        again.targets(np.arange(_N)), ensemble.targets(np.arange(_N)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_it_goes_around_imm():
    inner = InducedModelMatching(
        fixtures.language_model(), fixtures.restricted_model(), InBatchContexts()
    )
    teacher = _teacher(inner)
    terms = teacher.objective_terms(*next(iter(_data().dataset())), training=True)
    assert list(terms) == ["nll", "imm", "lipschitz", "consistency"]


def test_mistakes():
    with pytest.raises(ValueError, match=r"no ensemble\. A loaded model has none"):
        _teacher(ensemble=None).objective_terms(
            *next(iter(_data().dataset())), training=True
        )
    with pytest.raises(ValueError, match=r"those of `PlacedBatches`, or"):
        _teacher().objective_terms(*fixtures.element(), training=True)
    with pytest.raises(ValueError, match=r"`ensemble` has variant 'authors'"):
        _teacher(ensemble=TokenEnsemble(_N, 2, variant="authors"))
    with pytest.raises(ValueError, match=r"`ramp` must be"):
        _teacher(ramp="steep")

"""Predictions of teachers, stored: of the whole text, joined, dynamic; mistakes."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from rlm_tf import distillation as strategies
from rlm_tf.data import PlacedBatches, VariableWindows
from rlm_tf.evaluation import (
    DynamicEvaluation,
    MonteCarloDropout,
    gradient_statistics,
    target_log_probs,
)
from rlm_tf.models import TeacherPredictions
from rlm_tf.training import ResumableBatches
from tests.models.distillation.language_fixtures import (
    V,
    log_probs_of,
    model_of,
    placed,
    student_of,
    written,
)
from tests.models.imm import imm_fixtures as fixtures

pytestmark = pytest.mark.eager


@pytest.mark.parametrize("several", [False, True])
def test_stored_predictions_are_those_of_the_whole_text(tmp_path, several):
    teacher = [model_of(8), model_of(9)] if several else model_of(8)
    # Rows, windows and padding are others than those of one row.
    predictions = written(tmp_path / "p", teacher, batch_size=3, window=7)
    words = fixtures.stream()
    whole = TeacherPredictions.write(
        teacher, fixtures.batches(batch_size=3, window=400), tmp_path / "w", k=V
    )
    places = np.arange(len(words))
    found, expected = (
        each.at(places, words, np.ones(len(words), bool))
        for each in (predictions, whole)
    )
    np.testing.assert_array_equal(found.words, expected.words)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-5)
    models = teacher if several else [teacher]
    row = np.concatenate([[0], words[:133]])[np.newaxis]
    mean = np.mean([np.exp(log_probs_of(each, row)) for each in models], axis=0)[0]
    dense = np.zeros([134, V])
    np.put_along_axis(
        dense, found.words.numpy()[:134], np.exp(found.log_probs[:134]), axis=1
    )
    np.testing.assert_allclose(dense, mean, atol=1e-5)


def test_what_a_sure_teacher_leaves_is_not_rounding(tmp_path):
    words = fixtures.stream()
    model, temperature = model_of(8), 0.01
    predictions = written(
        tmp_path / "p", model, k=3, temperature=temperature, batch_size=1, window=400
    )
    found = predictions.at(np.arange(len(words)), words, np.ones(len(words), bool))
    row = np.concatenate([[0], words[:-1]])[np.newaxis]
    log_probs = log_probs_of(model, row)[0] / temperature
    log_probs -= scipy.special.logsumexp(log_probs, axis=1, keepdims=True)
    rest = np.sort(log_probs, axis=1)[:, :-3]
    expected = scipy.special.logsumexp(rest, axis=1)
    # Far below what 1 - sum of single precision can tell.
    assert (expected < -20).any()
    np.testing.assert_allclose(found.log_rest, expected, atol=2e-3)


@pytest.mark.parametrize("order", [1, 3])
def test_restricted_models_see_the_whole_text(tmp_path, order):
    teacher = fixtures.restricted_model(order).with_floor(0.1)
    predictions = written(tmp_path / "p", teacher)
    words = fixtures.stream()
    places = np.arange(20, 40)
    found = predictions.at(places, words[places], np.ones(20, bool))
    for place, own, log_probs, log_rest in zip(places, *found, strict=True):
        assert log_rest == -np.inf  # All words are stored.
        context = words[np.newaxis, place - order + 1 : place]
        probs = teacher.probs_numpy(context)[0]
        np.testing.assert_allclose(np.exp(log_probs), probs[own], atol=1e-6)


def test_parts_of_a_text_are_joined(tmp_path):
    words = fixtures.stream(60)
    parts = [
        written(tmp_path / f"{number}", model_of(8 + number), words=part, batch_size=1)
        for number, part in enumerate((words[:25], words[25:]))
    ]
    joined = TeacherPredictions.join(parts, tmp_path / "all")
    assert joined.num_tokens == 60
    places = np.arange(60)
    found = joined.at(places, words, np.ones(60, bool))
    for part, rows in zip(parts, (slice(0, 25), slice(25, 60)), strict=True):
        own = words[rows]
        expected = part.at(np.arange(len(own)), own, np.ones(len(own), bool))
        np.testing.assert_array_equal(found.words[rows], expected.words)
        np.testing.assert_array_equal(found.log_probs[rows], expected.log_probs)
    other = written(tmp_path / "k", k=2)
    with pytest.raises(ValueError, match="one vocabulary, k and temperature"):
        TeacherPredictions.join([parts[0], other], tmp_path / "no")


@pytest.mark.landing
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_stored_and_living_teachers_are_one(tmp_path, temperature):
    teacher = model_of(8)
    stored = written(tmp_path / "p", teacher, temperature=temperature)
    losses = [(strategies.KD(temperature), 0.5)]
    histories = []
    for own, data in (
        (teacher, fixtures.batches()),
        (stored, PlacedBatches(fixtures.batches())),
    ):
        model = student_of(own, losses)
        data = ResumableBatches(data)
        logs = model.fit(data.dataset, verbose=0, shuffle=False).history
        histories.append([logs["kd"], logs["nll"], fixtures.flat_weights(model)])
    for found, expected in zip(*histories, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_few_words_are_a_lower_bound(tmp_path):
    teacher, last = model_of(8), 0.0
    for k in (1, 3, V):
        stored = written(tmp_path / f"{k}", teacher, k=k)
        terms = student_of(stored, strategies.KD(1.0)).objective_terms(
            *placed(), training=True
        )
        loss = float(tf.reduce_mean(terms["kd"].loss))
        assert loss > last
        last = loss


@pytest.mark.parametrize("variable", [False, True])
def test_places_are_those_of_the_targets(variable):
    words = np.arange(100) % 50
    batches = fixtures.batches(words, 3, 7)
    if variable:
        batches = VariableWindows(words, 3, 7, prefix=0, seed=1)
    data = ResumableBatches(PlacedBatches(batches))
    seen = []
    for epoch, start in ((0, 0), (2, 1)):
        data.seek(epoch, start)
        for (_, places), targets, weights in data.dataset:
            counts = weights > 0
            np.testing.assert_array_equal(words[places[counts]], targets[counts])
            seen += places[counts].numpy().tolist()
        if epoch == 0:
            assert sorted(seen) == list(range(100))


def test_monte_carlo_dropout_stores_what_it_scores(tmp_path):
    model = fixtures.language_model(seed=8, input_dropout=0.4, output_dropout=0.3)
    before = [variable.numpy() for variable in model.variables]
    batches, words = fixtures.batches(batch_size=3, window=7), fixtures.stream()

    def stored(model, dropout, name):
        path = tmp_path / name
        found = TeacherPredictions.write(model, batches, path, V, dropout=dropout)
        rows = found.at(np.arange(len(words)), words, np.ones(len(words), bool))
        np.testing.assert_allclose(np.exp(rows.log_probs).sum(axis=1), 1, atol=1e-5)
        places = np.argmax(rows.words.numpy() == words[:, None], axis=1)
        return np.take_along_axis(rows.log_probs.numpy(), places[:, None], axis=1)[:, 0]

    def scored(model, **options):
        return target_log_probs(model, words, 3, 7, prefix=0, **options)

    one = MonteCarloDropout(1, seed=3)
    expected = scored(model, monte_carlo=one)
    np.testing.assert_allclose(stored(model, one, "1"), expected, atol=1e-5)
    assert not np.allclose(expected, scored(model), atol=1e-2)
    # Draws of several come in another order; the mean is nearer to that of many.
    several = stored(model, MonteCarloDropout(4, seed=3), "4")
    many = scored(model, monte_carlo=MonteCarloDropout(12))
    assert np.mean((several - many) ** 2) < np.mean((expected - many) ** 2) / 2

    class Nothing(MonteCarloDropout):
        of = staticmethod(lambda model: contextlib.nullcontext())

    plain = model_of(8)
    np.testing.assert_allclose(stored(plain, Nothing(3), "3"), scored(plain), atol=1e-5)
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    for teacher, message in (
        (fixtures.restricted_model(2), "`dropout` is for language models"),
        (model_of(8), "the model has no dropout with a rate above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            TeacherPredictions.write(
                teacher, batches, tmp_path / "q", dropout=MonteCarloDropout(1)
            )


@pytest.mark.parametrize("batch_size", [1, 3])
def test_dynamic_evaluation_stores_what_it_scores(tmp_path, batch_size):
    model, words = model_of(8), fixtures.stream(120)
    trained = model.get_weights()
    statistics = gradient_statistics(model, words, 4, 10, prefix=0)
    dynamic = DynamicEvaluation(statistics, learning_rate=5e-3, epsilon=0.05)
    batches = fixtures.batches(words, batch_size, 7)
    stored = TeacherPredictions.write(
        model, batches, tmp_path / "p", k=V, dynamic=dynamic
    )
    for weight, before in zip(model.get_weights(), trained, strict=True):
        np.testing.assert_array_equal(weight, before)
    found = stored.at(np.arange(120), words, np.ones(120, bool))
    own = found.log_probs.numpy()[found.words.numpy() == words[:, np.newaxis]]
    scored = target_log_probs(model, words, batch_size, 7, prefix=0, dynamic=dynamic)
    np.testing.assert_allclose(own, scored, atol=1e-5)
    static = target_log_probs(model, words, batch_size, 7, prefix=0)
    assert np.abs(scored - static).max() > 1e-3
    for teacher in ([model, model_of(9)], fixtures.restricted_model(3)):
        with pytest.raises(ValueError, match="`dynamic` is for a single language mod"):
            TeacherPredictions.write(teacher, batches, tmp_path / "q", dynamic=dynamic)


def test_mistakes_of_files(tmp_path):
    written(tmp_path / "p")
    with pytest.raises(FileExistsError, match=r"exists; remove it"):
        written(tmp_path / "p")
    with pytest.raises(FileNotFoundError, match=r"has no predictions"):
        TeacherPredictions(tmp_path / "none")
    settings = next((tmp_path / "p").glob("*.json"))
    for file in (tmp_path / "p" / "log_probs.npy", settings):
        whole = file.read_bytes()
        file.write_bytes(whole[:30])
        with pytest.raises(ValueError, match=r"p is damaged \(.*\); remove it"):
            TeacherPredictions(tmp_path / "p")
        file.write_bytes(whole)
    assert TeacherPredictions(tmp_path / "p").num_tokens
    with pytest.raises(ValueError, match=r"must be those of `contiguous_batches`"):
        TeacherPredictions.write(model_of(8), [1], tmp_path / "q")
    with pytest.raises(ValueError, match=r"PlacedBatches: `batches` must be"):
        PlacedBatches([1])
    broken = model_of(8)
    broken.set_weights([np.full(w.shape, np.nan) for w in broken.get_weights()])
    with pytest.raises(ValueError, match=r"has a weight that is no finite number"):
        written(tmp_path / "nan", broken)
    assert not (tmp_path / "nan").exists()

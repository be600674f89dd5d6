"""Language students: terms by hand, shared softmax, stored predictions, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distillation as strategies
from rlm_tf import distribution, load_model
from rlm_tf.data import PlacedBatches, VariableWindows
from rlm_tf.models import (
    AWDLanguageModel,
    InBatchContexts,
    InducedModelMatching,
    LanguageDistillation,
    OwnContexts,
    TeacherPredictions,
)
from rlm_tf.models.distillation import language_distillation
from rlm_tf.models.distillation.own_samples import own_samples
from rlm_tf.objectives import distillation as outputs
from rlm_tf.training import ResumableBatches
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference

pytestmark = pytest.mark.eager
_V = fixtures.VOCABULARY


def _model(seed):
    return fixtures.language_model(seed=seed)


def _student(teacher, losses, student=None, **options):
    student = _model(5) if student is None else student
    return fixtures.compiled(
        LanguageDistillation(teacher, student, losses, **options), run_eagerly=True
    )


def _predictions(path, teacher=None, k=_V, temperature=1.0, **batches):
    teacher = _model(8) if teacher is None else teacher
    return TeacherPredictions.write(
        teacher, fixtures.batches(**batches), path, k=k, temperature=temperature
    )


def _placed(**batches):
    return next(iter(PlacedBatches(fixtures.batches(**batches)).dataset()))


def _log_probs(model, tokens):
    return np.log(reference.softmax(model(tokens).numpy().astype(np.float64)))


# === Terms ===


@pytest.mark.parametrize("kind", ["model", "several", "restricted"])
def test_terms_by_hand(kind):
    (tokens, start), targets, weights = fixtures.element()
    teachers = {
        "model": _model(8),
        "several": [_model(8), _model(9)],
        "restricted": fixtures.restricted_model(3).with_floor(0.1),
    }
    teacher = teachers[kind]
    model = _student(
        teacher,
        [(strategies.KD(1.0), 0.5), strategies.ReverseKD(2.0), strategies.DIST()],
        student_weight=0.3,
    )
    terms = model.objective_terms((tokens, start), targets, weights, training=True)
    assert list(terms) == ["nll", "kd", "reverse_kd", "dist"]
    if kind == "restricted":
        t = np.log(
            [
                restricted_probs(teacher, row, step)
                for row in tokens.numpy()
                for step in range(tokens.shape[1])
            ]
        )
    elif kind == "several":
        t = np.mean([np.exp(_log_probs(each, tokens)) for each in teacher], axis=0)
        t = np.log(t).reshape(-1, _V)
    else:
        t = _log_probs(teacher, tokens).reshape(-1, _V)
    s = _log_probs(model.student, tokens).reshape(-1, _V)
    counts = np.ravel(weights).copy()
    if kind == "restricted":
        whole = np.ones(tokens.shape)
        whole[:, :1] = 0
        counts *= whole.ravel()
    rows = counts > 0
    expected = {
        "kd": outputs.kd(t, s, temperature=1.0).loss,
        "reverse_kd": outputs.reverse_kd(t, s, temperature=2.0).loss,
    }
    for name, loss in expected.items():
        found = terms[name]
        np.testing.assert_array_equal(found.weights, counts)
        np.testing.assert_allclose(found.loss[rows], loss[rows], atol=1e-5)
    logs = model.train_on_batch((tokens, start), targets, weights, return_dict=True)
    total = 0.3 * logs["nll"] + 0.5 * logs["kd"] + logs["reverse_kd"] + logs["dist"]
    assert logs["loss"] == pytest.approx(total, rel=1e-5)


def restricted_probs(teacher, row, step):
    """Of a trigram's context, which begins with the first word twice."""
    context = [row[max(step - 1, 0)], row[step]]
    return teacher.probs_numpy(np.array([context]))[0]


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_one_softmax_or_two_give_one_gradient(tmp_path, monkeypatch, temperature):
    predictions = _predictions(tmp_path / "p", k=3, temperature=temperature)
    for teacher, element in (
        (_model(8), fixtures.element()),
        (predictions, _placed()),
    ):
        found = []
        for apart in (False, True):
            model = _student(teacher, [(strategies.KD(temperature), 0.7)])
            if apart:
                monkeypatch.setattr(language_distillation, "_is_plain", lambda _: False)
            found.append(fixtures.step_gradient(model, element))
            monkeypatch.undo()
        np.testing.assert_allclose(*found, atol=1e-6)


def test_restricted_teacher_is_noising_up_to_its_entropy():
    restricted = fixtures.restricted_model(3).with_floor(0.1)
    element = fixtures.element()
    student = _student(restricted, [(strategies.KD(1.0), 0.2)])
    noising = fixtures.wrapper(OwnContexts(), restricted=restricted, coefficient=0.2)
    np.testing.assert_allclose(
        fixtures.step_gradient(student, element),
        fixtures.step_gradient(noising, element),
        atol=1e-6,
    )


def test_further_terms_of_the_student_stay():
    awd = AWDLanguageModel(
        _V,
        units=[6],
        embedding_width=6,
        mixture_components=1,
        activation_penalty=2.0,
        temporal_penalty=1.0,
        jit_loop=False,
        weight_drop=0.0,
        input_dropout=0.0,
        layer_dropout=0.0,
        output_dropout=0.0,
        word_dropout=0.0,
    )
    element = fixtures.element()
    model = _student(_model(8), strategies.KD(1.0), awd)
    logs = model.train_on_batch(*element, return_dict=True)
    assert {"nll", "activation_penalty", "temporal_penalty", "kd"} <= set(logs)
    expected = awd.objective_terms(*element, training=True)
    terms = model.objective_terms(*element, training=True)
    for name, term in expected.items():
        assert terms[name].loss.shape == term.loss.shape


def test_it_composes_with_imm():
    restricted = fixtures.restricted_model()
    element = fixtures.element()
    inner = InducedModelMatching(
        _model(5), restricted, InBatchContexts(min_count=1), coefficient=0.2
    )
    model = _student(_model(8), strategies.KD(2.0), inner)
    terms = model.objective_terms(*element, training=True)
    assert list(terms) == ["nll", "imm", "kd"]
    plain = _student(_model(8), strategies.KD(2.0))
    expected = plain.objective_terms(*element, training=True)
    for name in ("nll", "kd"):
        np.testing.assert_allclose(
            tf.reshape(terms[name].loss, [-1]),
            tf.reshape(expected[name].loss, [-1]),
            atol=1e-5,
        )
    few = fixtures.batches(fixtures.stream(120))
    logs = model.fit(few.dataset(), epochs=2, verbose=0, shuffle=False).history
    assert logs["kd"][1] < logs["kd"][0]
    assert model.optimizer.iterations == 2 * few.steps


def test_models_of_keras_teach_and_learn():
    teacher, student = fixtures.causal_transformer(8), fixtures.causal_transformer(4)
    model = _student(teacher, [strategies.KD(1.0), strategies.DecoupledKD()], student)
    model.optimizer.learning_rate = 0.02
    data = fixtures.batches(window=10).dataset().map(lambda x, y, w: (x[0], y, w))
    logs = model.fit(data, epochs=2, verbose=0).history
    assert logs["kd"][-1] < logs["kd"][0]


def test_a_student_comes_to_what_its_teacher_says():
    teacher = _model(8)
    model = LanguageDistillation(
        teacher, _model(5), strategies.KD(1.0), student_weight=0.0
    )
    model.compile(keras.optimizers.Adam(0.03))
    before = [weight.numpy() for weight in teacher.weights]
    data = fixtures.batches()
    model.fit(data.dataset(), epochs=6, verbose=0)
    for weight, was in zip(teacher.weights, before, strict=True):
        np.testing.assert_array_equal(weight, was)
    assert teacher.trainable
    logs = model.evaluate(data.dataset(), verbose=0, return_dict=True)
    assert set(logs) == {"loss", "nll", "perplexity"}
    tokens = fixtures.stream()[np.newaxis, :60]
    far = outputs.kd(teacher(tokens), _model(5)(tokens), temperature=1.0).loss
    near = outputs.kd(teacher(tokens), model(tokens), temperature=1.0).loss
    assert np.mean(near) < np.mean(far) / 2


# === On-policy ===


@pytest.mark.parametrize("kind", ["model", "restricted"])
def test_own_samples_are_judged(kind):
    teacher = _model(8)
    if kind == "restricted":
        teacher = fixtures.restricted_model(3).with_floor(0.1)
    losses = [(strategies.ReverseKD(1.0), 0.5)]
    element = fixtures.element()
    model = _student(teacher, losses, on_policy=0.25, seed=3)
    specs = {spec.name: spec.coefficient for spec in model.term_specs}
    assert specs["reverse_kd"] == 0.375 and specs["reverse_kd_on_policy"] == 0.125
    terms = model.objective_terms(*element, training=True)
    again = _student(teacher, losses, on_policy=0.25, seed=3)
    repeated = again.objective_terms(*element, training=True)
    own = terms["reverse_kd_on_policy"]
    np.testing.assert_array_equal(own.loss, repeated["reverse_kd_on_policy"].loss)
    # Of what was said, seen again by hand.
    (tokens, _), *_ = element
    fresh = _student(teacher, losses, on_policy=0.25, seed=3)
    said = own_samples(fresh.view, tokens[:, 0], 10, fresh.sample_seeds)
    np.testing.assert_array_equal(said[:, 0], tokens[:, 0])
    assert not np.array_equal(said, tokens)
    s = _log_probs(fresh.student, said).reshape(-1, _V)
    counts = np.ones(said.shape)
    if kind == "restricted":
        counts[:, 0] = 0
        rows = [
            restricted_probs(teacher, row, step)
            for row in said.numpy()
            for step in range(10)
        ]
        t = np.log(rows)
    else:
        t = _log_probs(teacher, said).reshape(-1, _V)
    expected = outputs.reverse_kd(t, s, temperature=1.0).loss
    np.testing.assert_array_equal(own.weights, counts.ravel())
    kept = counts.ravel() > 0
    np.testing.assert_allclose(own.loss[kept], expected[kept], atol=1e-5)


def test_a_student_says_tokens_by_their_probability():
    view = _student(_model(8), strategies.KD(1.0), on_policy=1.0).view
    seeds = keras.random.SeedGenerator(1)
    first = np.full(4000, 3)
    said = own_samples(view, first, 2, seeds).numpy()[:, 1]
    shares = np.bincount(said, minlength=_V) / 4000
    probs = np.exp(_log_probs(view.model, first[:1, None]))[0, 0]
    np.testing.assert_allclose(shares, probs, atol=0.03)


def test_on_policy_trains_in_graphs_and_two_replicas_equal_one():
    losses = [(strategies.GeneralisedJSD(0.5), 1.0)]

    def student():
        model = LanguageDistillation(
            _model(8), _model(5), losses, student_weight=0.0, on_policy=0.5
        )
        return fixtures.compiled(model)

    alone = student()
    with distribution.strategy("mirrored").scope():
        shared = student()
    data = fixtures.batches(fixtures.stream(160)).dataset()
    logs = [m.fit(data, epochs=2, verbose=0).history for m in (alone, shared)]
    name = "generalised_jsd_on_policy"
    assert logs[0][name][1] < logs[0][name][0]
    np.testing.assert_allclose(
        fixtures.flat_weights(shared), fixtures.flat_weights(alone), atol=1e-5
    )
    for key, values in logs[0].items():
        np.testing.assert_allclose(logs[1][key], values, atol=1e-5, err_msg=key)


# === Stored predictions ===


@pytest.mark.parametrize("several", [False, True])
def test_stored_predictions_are_those_of_the_whole_text(tmp_path, several):
    teacher = [_model(8), _model(9)] if several else _model(8)
    # Rows, windows and padding are others than those of one row.
    predictions = _predictions(tmp_path / "p", teacher, batch_size=3, window=7)
    words = fixtures.stream()
    whole = TeacherPredictions.write(
        teacher, fixtures.batches(batch_size=3, window=400), tmp_path / "w", k=_V
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
    mean = np.mean([np.exp(_log_probs(each, row)) for each in models], axis=0)[0]
    dense = np.zeros([134, _V])
    np.put_along_axis(
        dense, found.words.numpy()[:134], np.exp(found.log_probs[:134]), axis=1
    )
    np.testing.assert_allclose(dense, mean, atol=1e-5)


@pytest.mark.parametrize("order", [1, 3])
def test_restricted_models_see_the_whole_text(tmp_path, order):
    teacher = fixtures.restricted_model(order).with_floor(0.1)
    predictions = _predictions(tmp_path / "p", teacher)
    words = fixtures.stream()
    places = np.arange(20, 40)
    found = predictions.at(places, words[places], np.ones(20, bool))
    for place, own, log_probs in zip(places, *found, strict=True):
        context = words[np.newaxis, place - order + 1 : place]
        probs = teacher.probs_numpy(context)[0]
        np.testing.assert_allclose(np.exp(log_probs), probs[own], atol=1e-6)


def test_parts_of_a_text_are_joined(tmp_path):
    words = fixtures.stream(60)
    parts = [
        _predictions(
            tmp_path / f"{number}", _model(8 + number), words=part, batch_size=1
        )
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
    other = _predictions(tmp_path / "k", k=2)
    with pytest.raises(ValueError, match="one vocabulary, k and temperature"):
        TeacherPredictions.join([parts[0], other], tmp_path / "no")


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_stored_and_living_teachers_are_one(tmp_path, temperature):
    teacher = _model(8)
    stored = _predictions(tmp_path / "p", teacher, temperature=temperature)
    losses = [(strategies.KD(temperature), 0.5)]
    histories = []
    for own, data in (
        (teacher, fixtures.batches()),
        (stored, PlacedBatches(fixtures.batches())),
    ):
        model = _student(own, losses)
        data = ResumableBatches(data)
        logs = model.fit(data.dataset, verbose=0, shuffle=False).history
        histories.append([logs["kd"], logs["nll"], fixtures.flat_weights(model)])
    for found, expected in zip(*histories, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_few_words_are_a_lower_bound(tmp_path):
    teacher, last = _model(8), 0.0
    for k in (1, 3, _V):
        stored = _predictions(tmp_path / f"{k}", teacher, k=k)
        terms = _student(stored, strategies.KD(1.0)).objective_terms(
            *_placed(), training=True
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


# === Files ===


def test_files_have_the_student_alone(tmp_path):
    model = _student(_model(8), [(strategies.KD(2.0), 0.5)], student_weight=0.3)
    model.save(tmp_path / "m.keras")
    loaded = load_model(tmp_path / "m.keras")
    assert loaded.teacher is None
    assert loaded.losses_and_coefficients[0][0].temperature == 2.0
    assert loaded.coefficients == [0.5] and loaded.student_weight == 0.3
    tokens = fixtures.stream()[np.newaxis, :20]
    np.testing.assert_array_equal(loaded(tokens), model(tokens))
    with pytest.raises(ValueError, match=r"no teacher\. A loaded model"):
        loaded.objective_terms(*fixtures.element(), training=True)
    loaded.set_teacher(_model(8))
    loaded.objective_terms(*fixtures.element(), training=True)


# === Mistakes ===


def test_mistakes(tmp_path):
    stored = _predictions(tmp_path / "p", k=3, temperature=2.0)
    make = LanguageDistillation
    with pytest.raises(ValueError, match=r"is enough for KD at that temperature alone"):
        make(stored, _model(5), strategies.KD(1.0))
    with pytest.raises(ValueError, match=r"found ReverseKD at temperature 2"):
        make(stored, _model(5), strategies.ReverseKD(2.0))
    with pytest.raises(ValueError, match=r"FitNet needs outputs of layers"):
        make(_model(8), _model(5), strategies.FitNet("a", "b"))
    with pytest.raises(ValueError, match=r"`on_policy` needs a teacher that runs"):
        make(stored, _model(5), strategies.KD(2.0), on_policy=0.5)
    with pytest.raises(ValueError, match=r"`on_policy` needs a student with states"):
        make(
            _model(8), fixtures.causal_transformer(), strategies.KD(1.0), on_policy=1.0
        )
    with pytest.raises(ValueError, match=r"one vocabulary, found 9 and 7 words"):
        other = type(_model(8))(9, 8, 1, jit_loop=False)
        make(other, _model(5), strategies.KD(1.0))
    with pytest.raises(ValueError, match=r"a RestrictedModel or TeacherPredictions"):
        make("teacher", _model(5), strategies.KD(1.0))
    model = make(stored, _model(5), strategies.KD(2.0))
    with pytest.raises(ValueError, match=r"found by the places of tokens"):
        model.objective_terms(*fixtures.element(), training=True)
    x, targets, weights = _placed()
    with pytest.raises(ValueError, match=r"is of another text than the batches"):
        model.objective_terms(x, (targets + 1) % _V, weights, training=True)
    with pytest.raises(ValueError, match=r"places must lie in the text of 400 tokens"):
        model.objective_terms((x[0], x[1] + 400), targets, weights, training=True)
    with pytest.raises(FileExistsError, match=r"exists; remove it"):
        _predictions(tmp_path / "p")
    with pytest.raises(FileNotFoundError, match=r"has no predictions"):
        TeacherPredictions(tmp_path / "none")
    with pytest.raises(ValueError, match=r"must be those of `contiguous_batches`"):
        TeacherPredictions.write(_model(8), [1], tmp_path / "q")
    with pytest.raises(ValueError, match=r"PlacedBatches: `batches` must be"):
        PlacedBatches([1])
    broken = _model(8)
    broken.set_weights([np.full(w.shape, np.nan) for w in broken.get_weights()])
    with pytest.raises(ValueError, match=r"predictions of the teacher are not finite"):
        _predictions(tmp_path / "nan", broken)
    assert not (tmp_path / "nan").exists()

"""Language students: terms by hand, shared softmax, stored predictions, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.imm_consistency.source import ExactSource
from rlm_tf import distillation as strategies
from rlm_tf import distribution, load_model
from rlm_tf.data import PlacedBatches
from rlm_tf.models import (
    AWDLanguageModel,
    InBatchContexts,
    InducedModelMatching,
    LanguageDistillation,
    OwnContexts,
    StudentOrientedLanguageTeacher,
)
from rlm_tf.models.distillation import language_distillation
from rlm_tf.models.distillation.own_samples import own_samples
from rlm_tf.models.imm.short_contexts import short_contexts
from rlm_tf.objectives import distillation as outputs
from rlm_tf.training import TokenEnsemble
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
# === Terms ===


@pytest.mark.parametrize("kind", ["model", "several", "restricted"])
def test_terms_by_hand(kind):
    (tokens, start), targets, weights = fixtures.element()
    teachers = {
        "model": model_of(8),
        "several": [model_of(8), model_of(9)],
        "restricted": fixtures.restricted_model(3).with_floor(0.1),
    }
    teacher = teachers[kind]
    model = student_of(
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
        t = np.mean([np.exp(log_probs_of(each, tokens)) for each in teacher], axis=0)
        t = np.log(t).reshape(-1, V)
    else:
        t = log_probs_of(teacher, tokens).reshape(-1, V)
    s = log_probs_of(model.student, tokens).reshape(-1, V)
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
    predictions = written(tmp_path / "p", k=3, temperature=temperature)
    for teacher, element in (
        (model_of(8), fixtures.element()),
        (predictions, placed()),
    ):
        found = []
        for apart in (False, True):
            model = student_of(teacher, [(strategies.KD(temperature), 0.7)])
            if apart:
                monkeypatch.setattr(language_distillation, "_is_plain", lambda _: False)
            found.append(fixtures.step_gradient(model, element))
            monkeypatch.undo()
        np.testing.assert_allclose(*found, atol=1e-6)


def test_restricted_teacher_is_noising_up_to_its_entropy():
    restricted = fixtures.restricted_model(3).with_floor(0.1)
    element = fixtures.element()
    student = student_of(restricted, [(strategies.KD(1.0), 0.2)])
    noising = fixtures.wrapper(OwnContexts(), restricted=restricted, coefficient=0.2)
    np.testing.assert_allclose(
        fixtures.step_gradient(student, element),
        fixtures.step_gradient(noising, element),
        atol=1e-6,
    )
    found = student.objective_terms(*element, training=True)["kd"]
    expected = noising.objective_terms(*element, training=True)["imm"]
    contexts = short_contexts(element[0][0], restricted.context_length)
    log_probs = restricted.log_probs(tf.reshape(contexts, [-1, 2]))
    entropies = -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)
    counts = tf.reshape(expected.weights, [-1]) > 0
    np.testing.assert_array_equal(counts, tf.reshape(found.weights, [-1]) > 0)
    np.testing.assert_allclose(
        tf.boolean_mask(tf.reshape(found.loss, [-1]), counts),
        tf.boolean_mask(tf.reshape(expected.loss, [-1]) - entropies, counts),
        atol=1e-5,
    )


@pytest.mark.parametrize("coefficient", [0.2, 1.0])
def test_a_restricted_teacher_leads_away_from_the_truth_and_imm_does_not(coefficient):
    """On a known trigram source; exact expectations, slopes of logits."""
    source = ExactSource.random_trigram()
    teacher = np.log(source.restricted)[:, np.newaxis]

    def slope(probs, term):
        logits = tf.constant(np.log(probs))
        with tf.GradientTape() as tape:
            tape.watch(logits)
            log_probs = tf.nn.log_softmax(logits)
            loss = source.cross_entropy(log_probs) + coefficient * term(log_probs)
        return np.abs(tape.gradient(loss, logits)).max()

    def kd(log_probs):
        wide = tf.broadcast_to(teacher, log_probs.shape)
        losses = outputs.kd(wide, log_probs, temperature=1.0).loss
        return tf.reduce_sum(source.pi * losses)

    assert slope(source.probs, kd) > 1e-3
    assert slope(source.noising_minimiser(coefficient), kd) < 1e-8
    assert slope(source.probs, source.induced) < 1e-8
    # They compose: a student of both is where KD of its own weight puts it, whose
    # induced model is the restricted one already; half of KD's weight leaves it nearer.
    for weight, share in ((1.0, 1.0), (3.0, 1.0), (1.0, 0.5)):
        where = source.noising_minimiser(share * coefficient)
        both = slope(
            where, lambda q, w=weight, s=share: s * kd(q) + w * source.induced(q)
        )
        assert both < 1e-8
    near, far = (
        np.abs(source.noising_minimiser(share * coefficient) - source.probs).sum()
        for share in (0.5, 1.0)
    )
    assert near < far


def test_further_terms_of_the_student_stay():
    awd = AWDLanguageModel(
        V,
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
    model = student_of(model_of(8), strategies.KD(1.0), awd)
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
        model_of(5), restricted, InBatchContexts(min_count=1), coefficient=0.2
    )
    model = student_of(model_of(8), strategies.KD(2.0), inner)
    terms = model.objective_terms(*element, training=True)
    assert list(terms) == ["nll", "imm", "kd"]
    plain = student_of(model_of(8), strategies.KD(2.0))
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
    model = student_of(teacher, [strategies.KD(1.0), strategies.DecoupledKD()], student)
    model.optimizer.learning_rate = 0.02
    data = fixtures.batches(window=10).dataset().map(lambda x, y, w: (x[0], y, w))
    logs = model.fit(data, epochs=2, verbose=0).history
    assert logs["kd"][-1] < logs["kd"][0]


@pytest.mark.landing
def test_a_student_comes_to_what_its_teacher_says():
    teacher = model_of(8)
    model = LanguageDistillation(
        teacher, model_of(5), strategies.KD(1.0), student_weight=0.0
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
    far = outputs.kd(teacher(tokens), model_of(5)(tokens), temperature=1.0).loss
    near = outputs.kd(teacher(tokens), model(tokens), temperature=1.0).loss
    assert np.mean(near) < np.mean(far) / 2


# === On-policy ===


@pytest.mark.parametrize("kind", ["model", "restricted"])
def test_own_samples_are_judged(kind):
    teacher = model_of(8)
    if kind == "restricted":
        teacher = fixtures.restricted_model(3).with_floor(0.1)
    losses = [(strategies.ReverseKD(1.0), 0.5)]
    element = fixtures.element()
    model = student_of(teacher, losses, on_policy=0.25, seed=3)
    specs = {spec.name: spec.coefficient for spec in model.term_specs}
    assert specs["reverse_kd"] == 0.375 and specs["reverse_kd_on_policy"] == 0.125
    terms = model.objective_terms(*element, training=True)
    again = student_of(teacher, losses, on_policy=0.25, seed=3)
    repeated = again.objective_terms(*element, training=True)
    own = terms["reverse_kd_on_policy"]
    np.testing.assert_array_equal(own.loss, repeated["reverse_kd_on_policy"].loss)
    # Of what was said, seen again by hand.
    (tokens, _), *_ = element
    fresh = student_of(teacher, losses, on_policy=0.25, seed=3)
    said = own_samples(fresh.view, tokens[:, 0], 10, fresh.sample_seeds)
    np.testing.assert_array_equal(said[:, 0], tokens[:, 0])
    assert not np.array_equal(said, tokens)
    s = log_probs_of(fresh.student, said).reshape(-1, V)
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
        t = log_probs_of(teacher, said).reshape(-1, V)
    expected = outputs.reverse_kd(t, s, temperature=1.0).loss
    np.testing.assert_array_equal(own.weights, counts.ravel())
    kept = counts.ravel() > 0
    np.testing.assert_allclose(own.loss[kept], expected[kept], atol=1e-5)


def test_a_student_says_tokens_by_their_probability():
    view = student_of(model_of(8), strategies.KD(1.0), on_policy=1.0).view
    seeds = keras.random.SeedGenerator(1)
    first = np.full(4000, 3)
    said = own_samples(view, first, 2, seeds).numpy()[:, 1]
    shares = np.bincount(said, minlength=V) / 4000
    probs = np.exp(log_probs_of(view.model, first[:1, None]))[0, 0]
    np.testing.assert_allclose(shares, probs, atol=0.03)


@pytest.mark.landing
def test_on_policy_trains_in_graphs_and_two_replicas_equal_one():
    losses = [(strategies.GeneralisedJSD(0.5), 1.0)]

    def student():
        model = LanguageDistillation(
            model_of(8), model_of(5), losses, student_weight=0.0, on_policy=0.5
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


@pytest.mark.landing
@pytest.mark.parametrize("kind", ["running", "stored", "student-oriented"])
def test_two_replicas_equal_one(kind, tmp_path):
    data = fixtures.batches(fixtures.stream())
    stored = written(tmp_path / "said", k=3)

    def made():
        # What runs carries a state, each replica its own.
        teacher = stored if kind == "stored" else model_of(8)
        if kind == "student-oriented":
            ensemble = TokenEnsemble(len(fixtures.stream()), 3)
            model = StudentOrientedLanguageTeacher(
                model_of(5), lipschitz=0.01, epochs=2, ensemble=ensemble
            )
        else:
            model = LanguageDistillation(teacher, model_of(5), strategies.KD(1.0))
        return fixtures.compiled(model)

    alone = made()
    with distribution.strategy("mirrored").scope():
        shared = made()
    source = data if kind == "running" else PlacedBatches(data)
    logs = [
        m.fit(source.dataset(), epochs=2, verbose=0).history for m in (alone, shared)
    ]
    np.testing.assert_allclose(
        fixtures.flat_weights(shared), fixtures.flat_weights(alone), atol=1e-6
    )
    for key, values in logs[0].items():
        np.testing.assert_allclose(logs[1][key], values, rtol=1e-5, err_msg=key)


def test_a_teacher_of_no_replicas_is_a_mistake():
    teacher = model_of(8)
    with (
        distribution.strategy("mirrored").scope(),
        pytest.raises(ValueError, match="which each of 2 replicas needs for itself"),
    ):
        LanguageDistillation(teacher, model_of(5), strategies.KD(1.0))


# === Files ===


def test_files_have_the_student_alone(tmp_path):
    model = student_of(model_of(8), [(strategies.KD(2.0), 0.5)], student_weight=0.3)
    model.save(tmp_path / "m.keras")
    loaded = load_model(tmp_path / "m.keras")
    assert loaded.teacher is None
    assert loaded.losses_and_coefficients[0][0].temperature == 2.0
    assert loaded.coefficients == [0.5] and loaded.student_weight == 0.3
    tokens = fixtures.stream()[np.newaxis, :20]
    np.testing.assert_array_equal(loaded(tokens), model(tokens))
    with pytest.raises(ValueError, match=r"no teacher\. A loaded model"):
        loaded.objective_terms(*fixtures.element(), training=True)
    loaded.set_teacher(model_of(8))
    loaded.objective_terms(*fixtures.element(), training=True)


# === Mistakes ===


def test_mistakes(tmp_path):
    stored = written(tmp_path / "p", k=3, temperature=2.0)
    make = LanguageDistillation
    with pytest.raises(ValueError, match=r"is enough for KD at that temperature alone"):
        make(stored, model_of(5), strategies.KD(1.0))
    with pytest.raises(ValueError, match=r"found ReverseKD at temperature 2"):
        make(stored, model_of(5), strategies.ReverseKD(2.0))
    with pytest.raises(ValueError, match=r"FitNet needs outputs of layers"):
        make(model_of(8), model_of(5), strategies.FitNet("a", "b"))
    with pytest.raises(ValueError, match=r"`on_policy` needs a teacher that runs"):
        make(stored, model_of(5), strategies.KD(2.0), on_policy=0.5)
    with pytest.raises(ValueError, match=r"`on_policy` needs a student with states"):
        make(
            model_of(8),
            fixtures.causal_transformer(),
            strategies.KD(1.0),
            on_policy=1.0,
        )
    with pytest.raises(ValueError, match=r"one vocabulary, found 9 and 7 words"):
        other = type(model_of(8))(9, 8, 1, jit_loop=False)
        make(other, model_of(5), strategies.KD(1.0))
    with pytest.raises(ValueError, match=r"a RestrictedModel or TeacherPredictions"):
        make("teacher", model_of(5), strategies.KD(1.0))
    model = make(stored, model_of(5), strategies.KD(2.0))
    with pytest.raises(ValueError, match=r"found by the places of tokens"):
        model.objective_terms(*fixtures.element(), training=True)
    x, targets, weights = placed()
    with pytest.raises(ValueError, match=r"is of another text than the batches"):
        model.objective_terms(x, (targets + 1) % V, weights, training=True)
    with pytest.raises(ValueError, match=r"places must lie in the text of 400 tokens"):
        model.objective_terms((x[0], x[1] + 400), targets, weights, training=True)

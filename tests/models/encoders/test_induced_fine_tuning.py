"""IMM in fine-tuning: terms by loops, clipping, contexts, files, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import MarkovSource, SpecialIds
from rlm_tf.models import (
    InBatchContexts,
    InducedFineTuning,
    MaskedLanguageModel,
    PrefixPredictor,
    SampledPrefixes,
    SequenceClassifier,
)
from rlm_tf.restricted import KneserNey
from tests.models.encoders.toy import VOCABULARY, encoder, masked, texts
from tests.references.layers import set_random_weights
from tests.replica_steps import after_steps

_TOKENS, _SHOWN, _POSITIONS = masked(texts())
_LABELS = np.array([0, 1, 1, 0, 1, 0], np.int32)
_X = (_TOKENS, 0 * _TOKENS, _SHOWN, _POSITIONS)
_STREAM = np.random.default_rng(5).integers(5, VOCABULARY, 300)


def _bigram():
    return KneserNey(2).fit(_STREAM, VOCABULARY)


def make(contexts=None, restricted=True, dtype="float64", **options):
    shared = encoder(dtype=dtype)
    classifier = SequenceClassifier(shared, 2, dropout=0.0)
    masked_model = MaskedLanguageModel(shared)
    for layer in (classifier.dense_layer, classifier.logits_layer, masked_model.head):
        set_random_weights(layer)
    model = InducedFineTuning(
        classifier,
        masked_model,
        _bigram() if restricted else None,
        contexts,
        **options,
    )
    model.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    return model


def _means(model, x=_X, training=True):
    terms = model.objective_terms(x, _LABELS, None, training=training)
    return {
        name: float(
            tf.reduce_sum(term.loss * tf.cast(term.weights, term.loss.dtype))
            / tf.cast(tf.reduce_sum(term.weights), term.loss.dtype)
        )
        for name, term in terms.items()
    }


def _pieces():
    """Row, place and piece of all predictions that are matched."""
    return [
        (row, t, int(tokens[t]))
        for row, tokens in enumerate(_TOKENS)
        for t in range(len(tokens) - 1)
        if tokens[t] >= 5 and tokens[t + 1] >= 5
    ]


def test_task_and_masked_words_are_those_of_both_models():
    model = make(restricted=False)
    found = _means(model)
    assert set(found) == {"nll", "mlm"}
    task = model.classifier.objective_terms(_X[:2], _LABELS, None, training=True)
    assert found["nll"] == pytest.approx(np.mean(task["nll"].loss))
    batch = (_TOKENS, _SHOWN, _POSITIONS)
    words = model.masked_model.objective_terms(batch, None, None, training=True)["nll"]
    assert found["mlm"] == pytest.approx(np.mean(words.loss))
    # Evaluation is that of the task, whatever the batch has.
    assert set(_means(model, training=False)) == {"nll"}
    logs = model.evaluate(_X[:2], _LABELS, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "nll", "accuracy"}
    np.testing.assert_array_equal(model(_X), model.classifier(_X[:2]))


def test_induced_models_of_the_batch_by_loops():
    model = make(InBatchContexts(), positions=None)
    probs = tf.nn.softmax(PrefixPredictor(model.masked_model)(_TOKENS)).numpy()
    wanted = model.restricted_model.probs(tf.range(VOCABULARY)).numpy()
    total, places = 0.0, _pieces()
    for _, _, piece in places:
        same = [probs[r, s] for r, s, other in places if other == piece]
        total -= wanted[piece] @ np.log(np.mean(same, axis=0))
    assert _means(model)["imm"] == pytest.approx(total / len(places), rel=1e-5)


@pytest.mark.parametrize("hide", ["prefix", "mask", "causal"])
def test_published_contexts_by_loops(hide, monkeypatch):
    contexts = SampledPrefixes(_TOKENS, k=3)
    model = make(contexts, positions=None, hide=hide)
    drawn = []
    draw = contexts.draw
    monkeypatch.setattr(
        contexts, "draw", lambda *given: drawn.append(draw(*given)) or drawn[-1]
    )
    found = _means(model)["imm"]
    rows, where, known = (part.numpy() for part in drawn[0][:3])
    assert drawn[0].segments is None
    assert known.all()
    wanted = model.restricted_model.probs(tf.range(VOCABULARY)).numpy()
    predictor = PrefixPredictor(model.masked_model, hide)
    total, places = 0.0, _pieces()
    for number, (_, _, piece) in enumerate(places):
        samples = []
        for sample in range(number * 3, number * 3 + 3):
            text, place = rows[sample], where[sample, 1]
            # Each extended context ends in the piece.
            assert text[place] == piece and text[0] == 2
            logits = predictor(text[None]).numpy()[0, place]
            samples.append(tf.nn.softmax(logits).numpy())
        total -= wanted[piece] @ np.log(np.mean(samples, axis=0))
    assert found == pytest.approx(total / len(places), rel=1e-5)


def test_some_predictions_of_each_text_are_matched():
    model = make(InBatchContexts(), positions=2, seed=3)
    draws = [model._places(tf.constant(_TOKENS)).numpy() for _ in range(2)]
    allowed = {(row, t) for row, t, _ in _pieces()}
    for places in draws:
        assert set(map(tuple, places)) <= allowed
        rows = [row for row, _, _ in _pieces()]
        expected = np.minimum(np.bincount(rows, minlength=6), 2)
        assert np.bincount(places[:, 0], minlength=6).tolist() == expected.tolist()
    assert draws[0].tolist() != draws[1].tolist()


def test_task_and_words_are_clipped_together_and_imm_apart():
    def moved(**options):
        model = make(InBatchContexts(), positions=None, **options)
        before = [v.numpy() for v in model.trainable_variables]
        model.train_on_batch(_X, _LABELS)
        return [
            v.numpy() - old
            for v, old in zip(model.trainable_variables, before, strict=True)
        ]

    def norm(parts):
        return np.sqrt(sum(np.sum(part**2) for part in parts))

    joint = moved(coefficient=0.0)
    both = moved(coefficient=0.3)
    induced = [(b - a) / 0.3 for a, b in zip(joint, both, strict=True)]
    clip = 0.5 * min(norm(joint), norm(induced))
    found = moved(coefficient=0.3, clip_norm=clip)
    for got, one, other in zip(found, joint, induced, strict=True):
        expected = clip * (one / norm(joint) + 0.3 * other / norm(induced))
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.landing
def test_the_minimiser_on_a_known_source_is_its_transitions():
    """Predictions behind a piece of a Markov source are, on average, its row."""
    rows = np.array([[0.1, 0.8, 0.1], [0.2, 0.1, 0.7], [0.6, 0.3, 0.1]])
    source = MarkovSource(rows)
    tokens = np.tile(_TOKENS[:1], (16, 1))
    tokens[:, 1:9] = 5 + source.sample(16 * 8, 1).reshape(16, 8)
    tokens[:, 9] = 3
    given, shown, positions = masked(tokens)
    x, labels = (given, 0 * given, shown, positions), np.zeros(16, np.int32)
    shared = encoder(width=8, norm="pre", position_slope=1.0)
    model = InducedFineTuning(
        SequenceClassifier(shared, 2, dropout=0.0),
        MaskedLanguageModel(shared),
        KneserNey(2).fit(5 + source.sample(20_000, 2), VOCABULARY),
        InBatchContexts(),
        positions=None,
        mlm_weight=0.0,
        coefficient=5.0,
    )
    model.compile(keras.optimizers.Adam(0.01))
    for _ in range(120):
        model.train_on_batch(x, labels)
    probs = tf.nn.softmax(PrefixPredictor(model.masked_model)(given)).numpy()
    for piece in range(3):
        behind = probs[:, 1:8][given[:, 1:8] == 5 + piece].mean(0)
        np.testing.assert_allclose(behind[5:8], rows[piece], atol=0.03)


def test_other_special_ids_and_segments():
    """Ids of BERT's kind; the second text of a row has segments of its own."""
    special = SpecialIds(0, 9, 10, 11, 12)
    tokens = np.array([[10, 5, 4, 11, 3, 6, 11, 0], [10, 4, 3, 5, 11, 6, 11, 0]])
    segments = np.array([[0, 0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1, 1, 0]])
    shared = encoder(dtype="float64", num_segments=2)
    model = InducedFineTuning(
        SequenceClassifier(shared, 2),
        MaskedLanguageModel(shared),
        _bigram(),
        SampledPrefixes(tokens, k=2, segments=segments),
        positions=None,
        special=special,
    )
    set_random_weights(model.masked_model.head)
    places = model._places(tf.constant(tokens)).numpy().tolist()
    assert places == [[0, 1], [0, 4], [1, 1], [1, 2]]
    loss = model._matched(tf.constant(tokens), tf.constant(segments)).loss.numpy()
    # Piece 3 is in the second text of one row and in the first of the other.
    predictor = PrefixPredictor(model.masked_model, special=special)
    found = [
        tf.nn.log_softmax(predictor(tokens[[r]], segments=segments[[r]])[0, t]).numpy()
        for r, t in ((0, 4), (1, 2))
    ]
    probs = model.restricted_model.probs([3]).numpy()[0]
    pairs = [(found[i], found[j]) for i in range(2) for j in range(2)]
    possible = [-probs @ np.logaddexp(*pair) + np.log(2) for pair in pairs]
    for number in (1, 3):
        assert np.min(np.abs(loss[number] - possible)) < 1e-6
    assert abs(possible[0] - possible[3]) > 1e-3
    with pytest.raises(ValueError, match="must have the shape of `tokens`"):
        SampledPrefixes(tokens, segments=segments[:1])


def test_a_file_shares_the_encoder_and_has_no_text(tmp_path):
    options = {"dtype": "float32", "hide": "causal", "mlm_weight": 0.5}
    model = make(SampledPrefixes(_TOKENS), **options)
    model.save(tmp_path / "a.keras")
    loaded = keras.saving.load_model(tmp_path / "a.keras")
    assert loaded.masked_model.encoder is loaded.classifier.encoder
    np.testing.assert_array_equal(loaded(_X), model(_X))
    one, other = (each.masked_model(_SHOWN) for each in (loaded, model))
    np.testing.assert_array_equal(one, other)
    assert (loaded.hide, loaded.mlm_weight, loaded.contexts) == ("causal", 0.5, None)
    with pytest.raises(ValueError, match="A loaded model has none"):
        _means(loaded)
    loaded.contexts = InBatchContexts(bank_size=50, min_count=1)
    assert np.isfinite(_means(loaded)["imm"])


def test_without_dropout_as_in_the_paper():
    found = {}
    for mode in ("training", "evaluation"):
        shared = encoder(dropout=0.5)
        model = InducedFineTuning(
            SequenceClassifier(shared, 2, dropout=0.0),
            MaskedLanguageModel(shared),
            _bigram(),
            InBatchContexts(pass_mode=mode, min_count=1, bank_size=20),
            positions=None,
        )
        model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
        found[mode] = [_means(model)["imm"] for _ in range(3)]
    assert len({*found["training"]}) == 3
    # The bank fills up, but predictions of the batch are the same each time.
    plain = make(InBatchContexts(), positions=None, dtype="float32")
    assert np.isfinite(found["evaluation"]).all()
    model.contexts = InBatchContexts(pass_mode="evaluation")
    assert len({_means(model)["imm"] for _ in range(3)}) == 1
    plain.contexts = InBatchContexts(pass_mode="evaluation")
    one = _means(plain)["imm"]
    plain.contexts = InBatchContexts()
    assert one == pytest.approx(_means(plain)["imm"], rel=1e-5)


def test_a_bank_joins_the_predictions_of_earlier_batches():
    model = make(InBatchContexts(min_count=2, bank_size=100), positions=1)
    for _ in range(4):
        model.train_on_batch(_X, _LABELS)
    assert tf.size(model.contexts.banks[0].keys) > 6
    assert float(model.count_metric.result()) > 1.2


@pytest.mark.landing
def test_two_replicas_with_alike_rows_equal_one_with_a_bank(two_replicas):
    """Each groups its own predictions, and has its own bank: the same ones here."""
    x = tuple(np.concatenate([part, part]) for part in _X)
    batch = (x, np.concatenate([_LABELS, _LABELS]))

    def build():
        contexts = InBatchContexts(min_count=1, bank_size=100)
        return make(contexts, positions=None, dtype="float32")

    default = tf.distribute.get_strategy()
    alone, together = (
        after_steps(strategy, build, [batch] * 3, rate=0.01)
        for strategy in (default, two_replicas)
    )
    start = build()
    for one, other, before in zip(
        alone.trainable_variables,
        together.trainable_variables,
        start.trainable_variables,
        strict=True,
    ):
        np.testing.assert_allclose(np.array(other), one, atol=1e-6, err_msg=one.path)
        assert "key" in one.path or np.any(one.numpy() != before.numpy()), one.path
    counts = [float(model.count_metric.result()) for model in (alone, together)]
    assert counts[0] == pytest.approx(2 * counts[1])


def test_mistakes():
    with pytest.raises(ValueError, match="around the encoder of `classifier`"):
        InducedFineTuning(
            SequenceClassifier(encoder(), 2), MaskedLanguageModel(encoder())
        )
    model = make(restricted=False)
    with pytest.raises(ValueError, match="a batch without masked copies"):
        _means(model, _X[:2])
    with pytest.raises(ValueError, match="must be InBatchContexts or SampledPrefixes"):
        make(contexts=3)
    shared = encoder()
    parts = SequenceClassifier(shared, 2), MaskedLanguageModel(shared)
    with pytest.raises(ValueError, match="a context of one piece, found 2"):
        InducedFineTuning(*parts, KneserNey(3).fit(_STREAM, VOCABULARY))
    with pytest.raises(ValueError, match="must share one vocabulary, found sizes 20"):
        InducedFineTuning(*parts, KneserNey(2).fit(_STREAM, 30))
    with pytest.raises(ValueError, match="`tokens` must be integers"):
        SampledPrefixes([1.0, 2.0])

"""Mixed features: numbers computed two ways, samples, what the lemmas say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from rlm_tf.data import MixedFeatures
from rlm_tf.evaluation import feature_minimiser
from tests.references.distillation_reference import ORACLE

_ORACLE = ORACLE["mixed_feature"]
_PROBS, _LABELS = np.array(_ORACLE["p_Z"]), np.array(_ORACLE["p_Y_given_z"])
_FINITE = ORACLE["lemma3_finite"]


def _source(**options):
    return MixedFeatures(_PROBS, _LABELS, _ORACLE["M"], **options)


# === Numbers computed two ways ===


def test_label_distributions_are_those_of_the_oracle():
    for example in _ORACLE["examples"]:
        found = _source().label_distribution(example["features"])
        np.testing.assert_allclose(found, example["normalised"], atol=1e-11)


def test_the_limit_and_its_distance_are_those_of_the_oracle():
    source = _source()
    found = source.limit_minimiser()
    np.testing.assert_allclose(
        found, _ORACLE["infinite_data_patch_prediction"], atol=1e-11
    )
    features, probs = source.inputs()
    assert len(features) == 125 and probs.sum() == pytest.approx(1)
    truth = source.label_distribution(features)
    said = scipy.special.softmax(np.log(found)[features].mean(axis=1), axis=1)
    distance = probs @ np.abs(said - truth).sum(axis=1) / 2
    assert distance == pytest.approx(_ORACLE["expected_TV_f_vs_p"], abs=1e-10)
    divergence = probs @ scipy.special.rel_entr(truth, said).sum(axis=1)
    assert divergence == pytest.approx(_ORACLE["expected_KL_p_f"], abs=1e-10)
    entropy = probs @ scipy.special.entr(truth).sum(axis=1)
    assert entropy == pytest.approx(_ORACLE["bayes_entropy"], abs=1e-10)
    accuracy = probs @ truth.max(axis=1)
    assert accuracy == pytest.approx(_ORACLE["bayes_accuracy"], abs=1e-10)


def test_the_minimiser_counts_occurrences():
    features = np.array([row["features"] for row in _FINITE["dataset"]])
    labels = np.array([row["label"] for row in _FINITE["dataset"]])
    found = feature_minimiser(features, labels, 5, 3)
    np.testing.assert_allclose(found, _FINITE["minimiser_by_occurrence"], atol=1e-11)

    def risk(predictions):
        with np.errstate(divide="ignore"):
            own = np.log(predictions)[features, labels[:, np.newaxis]]
        return -own.mean()

    assert risk(found) == pytest.approx(_FINITE["risk_at_minimiser"], abs=1e-11)
    for other in ("mean_over_inputs_containing_z", "thesis_1_over_N"):
        assert risk(np.array(_FINITE[other])) > risk(found)
    assert np.isnan(feature_minimiser(features, labels, 6, 3)[5]).all()


@pytest.mark.parametrize("row", ORACLE["lemma5_residual"]["rows"])
def test_the_error_does_not_fall_with_more_features(row):
    number = row["Z"]
    z, k = np.arange(number)[:, np.newaxis], np.arange(3)
    labels = scipy.special.softmax(2 * np.cos(1.7 * z + 2.1 * k), axis=1)
    source = MixedFeatures(np.full(number, 1 / number), labels, row["M"])
    found = source.limit_minimiser()
    error = np.abs(found - labels).sum(axis=1).mean()
    assert error == pytest.approx(row["occurrences"], abs=1e-10)


def test_features_with_similar_labels_that_come_together_are_learnt_better():
    labels = np.array([[0.8, 0.2], [0.75, 0.25], [0.2, 0.8], [0.25, 0.75]])
    apart = MixedFeatures(np.full(4, 0.25), labels, 3)
    together = MixedFeatures([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], labels, 3)
    errors = [
        np.abs(source.limit_minimiser() - labels).sum(axis=1).mean()
        for source in (apart, together)
    ]
    assert errors[1] < errors[0] / 4


# === Samples ===


def test_samples_are_of_the_distributions():
    source = _source(noise=0.0, transformations=("identity", "flip", "shift"), seed=4)
    sample = source.sample(20_000, 1)
    assert sample.x.shape == (20_000, 3, 8) and sample.x.dtype == np.float32
    counts = np.bincount(sample.features.ravel(), minlength=5) / 60_000
    assert np.abs(counts - _PROBS).max() < 4 * np.sqrt(0.25 / 60_000)
    np.testing.assert_allclose(sample.probs, source.label_distribution(sample.features))
    # Labels are right as often as they say.
    own = sample.probs[np.arange(20_000), sample.labels]
    expected = (sample.probs**2).sum(axis=1)
    assert abs(own.mean() - expected.mean()) < 4 * own.std() / np.sqrt(20_000)
    # Each patch is a form of its prototype, and every form occurs.
    base = source.prototypes[sample.features].astype(np.float32)
    flipped = np.abs(np.abs(sample.x) - np.abs(base)).max(axis=-1) < 1e-6
    same = np.abs(sample.x - base).max(axis=-1) < 1e-6
    shifted = np.abs(sample.x - np.roll(base, 1, -1)).max(axis=-1) < 1e-6
    assert (flipped | shifted).all()
    for share in (same.mean(), (flipped & ~same).mean(), shifted.mean()):
        assert share == pytest.approx(1 / 3, abs=0.02)
    again = source.sample(20_000, 1)
    np.testing.assert_array_equal(again.x, sample.x)
    assert not np.array_equal(source.sample(20_000, 2).features, sample.features)


def test_noise_and_topics():
    noisy = _source(noise=0.5).sample(4000, 0)
    rest = noisy.x - _source(noise=0.5).prototypes[noisy.features]
    assert rest.std() == pytest.approx(0.5, rel=0.02)
    topics = MixedFeatures(
        [[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 1.0]], _LABELS, 3, topic_probs=[0.9, 0.1]
    )
    found = topics.sample(5000, 0).features
    assert (found == found[:, :1]).all()
    assert np.mean(found == 0) == pytest.approx(0.9, abs=0.02)
    assert np.isnan(topics.limit_minimiser()[1:4]).all()
    np.testing.assert_allclose(topics.limit_minimiser()[[0, 4]], _LABELS[[0, 4]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: MixedFeatures([0.5, 0.4], _LABELS[:2], 3),
            r"`feature_probs` must be probabilities that sum to 1, found sums \[0.9\]",
        ),
        (lambda: MixedFeatures(_PROBS, _LABELS[:2], 3), r"axes \[Z K\] with Z = 5"),
        (lambda: MixedFeatures([1.0], [[1.0, 0.0]], 3), "`label_probs` must be pos"),
        (lambda: _source(transformations=("turn",)), "must be one of identity"),
        (lambda: _source(topic_probs=[0.5, 0.5]), "`topic_probs` must have 1 entries"),
        (lambda: _source().label_distribution([0, 1]), r"integers \[... 3\]"),
        (lambda: _source().label_distribution([0, 1, 5]), r"lie in \[0, 5\)"),
        (lambda: MixedFeatures(_PROBS, _LABELS, 10).inputs(), "are too many"),
        (lambda: _source().sample(0, 0), "`count` must be an integer >= 1"),
        (
            lambda: feature_minimiser([[0, 9]], [0], 5, 3),
            r"`features` must be integers in \[0, 5\)",
        ),
        (
            lambda: feature_minimiser([0], [0], 5, 3),
            r"`features` must have axes \[N M\]",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""The study of teachers where the truth is known."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from experiments.mixed_features import judging, lemmas
from experiments.mixed_features.config import PRESETS as MIXED
from experiments.mixed_features.instances import drawn
from experiments.mixed_features.networks import PatchNetworks, transformed
from experiments.mixed_features.report import tables
from experiments.mixed_features.training import Terms, learn, teach
from tests.experiments.binaries import run_binary
from tests.references.distillation_reference import ORACLE

_CONFIG = dataclasses.replace(
    MIXED["smoke"], instances=3, epochs=4, units=5, checkpoints=2
)


_STORED = ("predictions", "dynamic-predictions")

# === mixed_features ===


def test_instances_differ_and_their_labels_are_of_the_truth():
    data = drawn(0, 2, 4000, 0.3, 1)
    assert not np.array_equal(data.x[0], data.x[1])
    shares = [np.eye(3)[labels].mean(axis=0) for labels in data.labels]
    np.testing.assert_allclose(shares, data.probs.mean(axis=1), atol=0.03)
    again = drawn(0, 2, 4000, 0.3, 1)
    np.testing.assert_array_equal(again.x, data.x)


def test_networks_of_instances_know_nothing_of_each_other():
    train, test = drawn(0, 3, 12, 0.3, 1), drawn(0, 3, 6, 0.3, 2)
    terms = Terms(lipschitz=0.1, consistency=1.0)
    found = teach(_CONFIG, terms, train, test, seed=1)
    other = train._replace(x=train.x.copy(), labels=train.labels.copy())
    other.x[2] += 1.0
    other.labels[2] = 0
    changed = teach(_CONFIG, terms, other, test, seed=1)
    np.testing.assert_allclose(found.said[:2], changed.said[:2], atol=1e-6)
    assert np.abs(found.said[2] - changed.said[2]).max() > 1e-3
    assert len(found.checkpoints) == 2
    for own, last in zip(
        found.checkpoints[-1], (found.said, found.tested), strict=True
    ):
        np.testing.assert_array_equal(own, last)


def test_cross_fitted_teachers_have_not_seen_what_they_predict():
    train, test = drawn(0, 2, 15, 0.3, 1), drawn(0, 2, 6, 0.3, 2)
    config = dataclasses.replace(_CONFIG, folds=5)
    found = teach(config, Terms(folds=5), train, test, seed=1)
    other = train._replace(labels=train.labels.copy())
    # Of the fold of the first example.
    other.labels[:, 0::5] = (other.labels[:, 0::5] + 1) % 3
    changed = teach(config, Terms(folds=5), other, test, seed=1)
    np.testing.assert_allclose(changed.said[:, 0::5], found.said[:, 0::5], atol=1e-6)
    assert np.abs(changed.said[:, 1::5] - found.said[:, 1::5]).max() > 1e-4
    stopped = teach(config, Terms(stops=True), train, test, seed=1)
    assert stopped.said.shape == (2, 15, 3)


def test_constants_and_transformations_by_hand():
    networks = PatchNetworks(2, [4, 3, 2], seed=1)
    expected = [
        sum(np.abs(kernel.numpy()[s]).sum(axis=1).max() for kernel in networks.kernels)
        for s in range(2)
    ]
    np.testing.assert_allclose(networks.lipschitz(), expected, rtol=1e-6)
    x = tf.random.stateless_normal([2, 50, 3, 8], [1, 2])
    found = transformed(x, tf.constant([3, 4])).numpy()
    same = np.isclose(found, x).all(axis=-1).mean()
    rolled = np.isclose(found, np.roll(x, 1, axis=-1)).all(axis=-1).mean()
    mirrored = np.isclose(np.abs(found), np.abs(x)).all(axis=-1).mean() - same
    for share in (same, rolled, mirrored):
        assert 0.25 < share < 0.42


def test_students_learn_what_they_are_told():
    train = drawn(0, 2, 30, 0.3, 1)
    config = dataclasses.replace(_CONFIG, epochs=200, rate=0.02, student_units=16)
    told = np.tile(np.float32([0.1, 0.1, 0.8]), [2, 30, 1])
    labels = train._replace(labels=np.full_like(train.labels, 2))
    student = learn(config, told, labels, seed=1)
    said = np.exp(student.log_probs(tf.constant(train.x)))
    # Half labels, half the teacher.
    np.testing.assert_allclose(said.mean(axis=(0, 1)), [0.05, 0.05, 0.9], atol=0.02)


def test_lemmas_are_those_of_the_oracle():
    found = lemmas.curves(0.0)
    known = {(r["Z"], r["M"]): r for r in ORACLE["lemma5_residual"]["rows"]}
    for row in found["lemma_5"]:
        expected = known.get((row["features"], row["patches"]))
        if expected is None:
            continue
        assert row["independent"] == pytest.approx(expected["occurrences"], abs=1e-9)
        printed = expected["thesis_1_over_N"]
        assert row["printed"] == pytest.approx(printed, abs=1e-9)
        assert row["together"] < 0.05
        # Theorem 2: one patch alone is known, mixtures are not, in topics nearly.
        assert (row["independent_tv"] > 1e-6) == (row["patches"] > 1)
        assert row["together_tv"] < 0.02
    limit = next(row["tv"] for row in found["theorem_2"] if not row["examples"])
    expected = ORACLE["mixed_feature"]["expected_TV_f_vs_p"]
    assert limit == pytest.approx(expected, abs=1e-9)


def test_deviations_of_labels_by_loops(monkeypatch):
    monkeypatch.setattr(lemmas, "_DRAWS", 1)
    monkeypatch.setattr(lemmas, "SIZES_COUNT", 30)
    found = lemmas._deviation(4, 2)
    sample = lemmas.independent(4, 2).sample(30, 0)
    mean, printed = [], []
    for feature in range(4):
        patches, inputs = [], np.zeros(3)
        for own, label, probs in zip(
            sample.features, sample.labels, sample.probs, strict=True
        ):
            apart = np.eye(3)[label] - probs
            patches += [apart for each in own if each == feature]
            inputs += apart * (feature in own)
        mean.append(np.abs(np.mean(patches, axis=0)).sum())
        printed.append(np.abs(inputs / 30).sum())
    assert found["mean"] == pytest.approx(np.mean(mean))
    assert found["printed"] == pytest.approx(np.mean(printed))
    assert (found["features"], found["patches"]) == (4, 2) and 0 < found["tv"] < 1


def test_numbers_of_lemma_6_by_hand():
    data = drawn(0, 2, 40, 0.3, 1)
    networks = PatchNetworks(2, (data.x.shape[-1], 4, 3), 0)
    found = judging.smoothness(networks, data)
    said = np.exp(networks.patch_log_probs(tf.constant(data.x)))
    for instance in range(2):
        features = data.features[instance]
        spreads, distances = [], []
        for feature in sorted(set(features.ravel())):
            places = np.argwhere(features == feature)
            own = [said[instance, row, patch] for row, patch in places]
            labels = [np.eye(3)[data.labels[instance, row]] for row, _ in places]
            mean = np.mean(labels, axis=0)
            distances.append(max(np.linalg.norm(each - mean) for each in own))
            spreads.append(max(np.linalg.norm(a - b) for a in own for b in own))
        assert found["spread"][instance] == pytest.approx(np.mean(spreads), rel=1e-4)
        expected = np.mean(distances)
        assert found["distance"][instance] == pytest.approx(expected, rel=1e-4)
        within = np.mean(np.array(distances) <= np.array(spreads))
        assert found["within"][instance] == within
    for kernel in networks.kernels:
        kernel.assign(0 * kernel)
    # Who says the same of all is not within a distance of nothing.
    assert judging.smoothness(networks, data)["within"] == [0.0, 0.0]


def test_judgements_by_hand():
    data = drawn(0, 2, 50, 0.3, 1)
    assert judging.against_truth(data.probs, data)["tv"] == [0.0, 0.0]
    uniform = np.full_like(data.probs, 1 / 3)
    found = judging.against_truth(uniform, data)
    expected = np.abs(data.probs - 1 / 3).sum(axis=2).mean(axis=1) / 2
    np.testing.assert_allclose(found["tv"], expected, rtol=1e-5)
    assert judging.on_labels(uniform, data)["nll"] == pytest.approx([np.log(3)] * 2)


def test_variances_are_those_of_the_noise():
    # Eight coordinates of a patch, each of that deviation; of five features the most.
    found = judging.variances(drawn(0, 2, 3000, 0.3, 1))
    np.testing.assert_allclose(found, 8 * 0.3**2, rtol=0.1)
    assert judging.variances(drawn(0, 1, 50, 0.0, 1)) == pytest.approx([0.0], abs=1e-9)


@pytest.mark.landing
@pytest.mark.slow
def test_mixed_features_from_end_to_end(tmp_path):
    flags = ("--preset=smoke", f"--output_dir={tmp_path}")
    printed = run_binary("mixed_features", *flags, check=True).stdout
    assert "| soteacher |" in printed and "in topics" in printed
    lines = (tmp_path / "results" / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line)["row"] for line in lines]
    stages = {"arms", "checkpoints", "sweep", "noise", "lemmas"}
    assert {row["stage"] for row in rows} == stages
    assert set(tables(rows)) == {
        "teachers",
        "students",
        "stand_ins",
        "smoothness",
        "checkpoints",
        "sweep",
        "noise",
        "convergence",
        "residual",
        "sizes",
    }
    for name in ("checkpoints", "lemmas", "noise", "sweep", "truth"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    again = run_binary("mixed_features", *flags, check=True).stdout
    assert again.count("done before") == len(rows)


# === distill_digits ===

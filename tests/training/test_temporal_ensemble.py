"""Temporal ensembles: numbers computed two ways, files, kills, replicas, ramps."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.training import TemporalEnsemble, ramp
from tests.references.distillation_reference import ORACLE

_ORACLE = ORACLE["temporal_ensemble"]
_CASE = _ORACLE["missed_and_doubled"]


@pytest.fixture(params=["memory", "files"], name="path")
def _path(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "means"


def _run(ensemble, first=0, last=3):
    """Gives the epochs of the oracle's case."""
    pairs = list(zip(_CASE["ids"], _CASE["predictions"], strict=True))[first:last]
    for ids, probs in pairs:
        # In two parts, of which the second may be empty.
        for part in (slice(0, 1), slice(1, None)):
            if len(ids[part]):
                ensemble.update(np.array(ids[part]), np.array(probs[part], "float32"))
        ensemble.end_epoch()
        yield


# === Numbers computed two ways ===


@pytest.mark.parametrize(
    ("variant", "trace"),
    [("thesis", "thesis_trace"), ("authors", "soteacher_code_trace")],
)
def test_means_of_one_example_are_those_of_the_oracle(path, variant, trace):
    ensemble = TemporalEnsemble(1, 3, path=path, variant=variant)
    for probs, expected in zip(_ORACLE["predictions"], _ORACLE[trace], strict=True):
        means, counts = ensemble.targets(np.array([0]))
        if expected["target_used"] is None:
            assert int(counts[0]) == 0
        else:
            np.testing.assert_allclose(means[0], expected["target_used"], atol=1e-6)
            distance = np.sum((np.array(probs) - means[0]) ** 2)
            assert distance == pytest.approx(expected["cr_loss"], abs=1e-6)
        ensemble.update(np.array([0]), np.array([probs]))
        # What is going on is no target yet.
        np.testing.assert_array_equal(ensemble.targets([0]).means, means)
        ensemble.end_epoch()
        found = ensemble.targets([0]).means[0]
        np.testing.assert_allclose(found, expected["avg_after"], atol=1e-6)


@pytest.mark.parametrize("variant", ["thesis", "authors"])
def test_missed_and_doubled_examples_are_those_of_the_oracle(path, variant):
    ensemble = TemporalEnsemble(3, 3, path=path, variant=variant)
    found = [ensemble.targets(np.arange(3))]
    found += [ensemble.targets(np.arange(3)) for _ in _run(ensemble)]
    for (means, counts), expected in zip(found, _CASE[variant], strict=True):
        np.testing.assert_allclose(means, expected["targets"], atol=1e-6)
        np.testing.assert_array_equal(counts, expected["counts"])


def test_ramps_are_those_of_the_oracle():
    for total, rows in _ORACLE["schedules"].items():
        for row in rows:
            for kind in ("linear", "cosine", "cyclic", "piecewise"):
                found = ramp(kind, row["t"], int(total.removeprefix("T=")))
                assert found == pytest.approx(row[kind], abs=1e-11), (kind, row["t"])


# === Graphs, replicas, kills ===


def test_a_graph_does_the_same_and_no_gradient_comes_back(path):
    plain = TemporalEnsemble(3, 3, path=path)
    expected = [plain.targets(np.arange(3)).means for _ in _run(plain)]
    other = None if path is None else path.with_name("graph")
    traced = TemporalEnsemble(3, 3, path=other)

    @tf.function(reduce_retracing=True)
    def step(ids, probs):
        with tf.GradientTape() as tape:
            tape.watch(probs)
            traced.update(ids, probs)
            total = tf.reduce_sum(traced.targets(ids).means * probs)
        return tape.gradient(total, probs)

    for epoch, (ids, probs) in enumerate(
        zip(_CASE["ids"], _CASE["predictions"], strict=True)
    ):
        slope = step(tf.constant(ids, tf.int64), tf.constant(probs, tf.float32))
        np.testing.assert_allclose(slope, traced.targets(ids).means, atol=1e-7)
        traced.end_epoch()
        np.testing.assert_array_equal(
            traced.targets(np.arange(3)).means, expected[epoch]
        )


def test_two_replicas_equal_one(path):
    plain = TemporalEnsemble(4, 2, path=path)
    probs = np.random.default_rng(0).dirichlet(np.ones(2), size=(2, 4))
    ids = np.array([[0, 1, 2, 3], [2, 0, 1, 1]])
    for row, own in zip(ids, probs, strict=True):
        plain.update(row, own)
        plain.end_epoch()
    strategy = distribution.strategy("mirrored")
    with strategy.scope():
        other = None if path is None else path.with_name("replicas")
        shared = TemporalEnsemble(4, 2, path=other)

    @tf.function
    def step(ids, probs):
        shared.update(ids, probs)
        return shared.targets(ids).counts

    for row, own in zip(ids, probs, strict=True):
        halves = [
            strategy.experimental_distribute_values_from_function(
                lambda context, each=each: tf.constant(
                    np.split(each, 2)[context.replica_id_in_sync_group]
                )
            )
            for each in (row, own)
        ]
        strategy.run(step, halves)
        shared.end_epoch()
    for found, expected in zip(
        shared.targets(np.arange(4)), plain.targets(np.arange(4)), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_an_unfinished_epoch_is_cut_back(tmp_path):
    whole = TemporalEnsemble(3, 3, path=tmp_path / "whole")
    expected = [whole.targets(np.arange(3)) for _ in _run(whole)][-1]
    for stop in (1, 2):
        folder = tmp_path / f"killed-{stop}"
        killed = TemporalEnsemble(3, 3, path=folder)
        for _ in _run(killed, 0, stop):
            pass
        saved = [variable.numpy() for variable in killed.variables]
        # After the checkpoint, another epoch and more.
        for _ in _run(killed, 0, 1):
            pass
        killed.update(np.array([2]), np.full([1, 3], 9.0))
        other = TemporalEnsemble(3, 3, path=folder)
        # A model may make a step before the checkpoint is there.
        other.update(np.array([0]), np.full([1, 3], 0.5))
        for variable, value in zip(other.variables, saved, strict=True):
            variable.assign(value)
        other.resume()
        found = [other.targets(np.arange(3)) for _ in _run(other, stop)][-1]
        np.testing.assert_array_equal(found.means, expected.means)
        np.testing.assert_array_equal(found.counts, expected.counts)


def test_records_behind_a_checkpoint_are_cut_off(tmp_path):
    ensemble = TemporalEnsemble(2, 2, path=tmp_path)
    ensemble.update([0], np.array([[1.0, 0.0]]))
    saved = [variable.numpy() for variable in ensemble.variables]
    ensemble.update([0, 1], np.array([[0.0, 1.0], [0.0, 1.0]]))
    for variable, value in zip(ensemble.variables, saved, strict=True):
        variable.assign(value)
    ensemble.resume()
    ensemble.end_epoch()
    found = ensemble.targets([0, 1])
    np.testing.assert_array_equal(found.means, [[1, 0], [0, 0]])
    np.testing.assert_array_equal(found.counts, [1, 0])
    # A new run in an old folder begins anew.
    again = TemporalEnsemble(2, 2, path=tmp_path)
    again.update([1], np.array([[0.5, 0.5]]))
    again.end_epoch()
    np.testing.assert_array_equal(again.targets([0, 1]).means, [[0, 0], [0.5, 0.5]])
    assert len(list(tmp_path.iterdir())) == 1


# === Mistakes ===


def test_mistakes_are_named(path, tmp_path):
    ensemble = TemporalEnsemble(3, 2, path=path)
    for call, message in (
        (
            lambda: ensemble.targets([3]),
            r"TemporalEnsemble.targets: `ids` must lie in \[0, 3\), found 3",
        ),
        (lambda: ensemble.targets([0.5]), "`ids` must be integer ids"),
        (lambda: ensemble.targets([[0]]), r"`ids` must have axes \[B\]"),
        (
            lambda: ensemble.update([-1], np.ones([1, 2])),
            r"update: `ids` must lie in \[0, 3\), found -1",
        ),
        (lambda: ensemble.update([1], np.ones([1, 3])), "axis 2 of `probs` is 3"),
        (lambda: TemporalEnsemble(0, 2), "`num_examples` must be an integer >= 1"),
        (
            lambda: TemporalEnsemble(1, 2, variant="paper"),
            "`variant` must be one of thesis, authors",
        ),
        (lambda: ramp("square", 1, 2), "`kind` must be one of linear"),
        (lambda: ramp("linear", 3, 2), r"`t` must lie in \[0, 2\], found 3"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(tf.errors.InvalidArgumentError, match="found"):
        tf.function(lambda ids: ensemble.targets(ids).counts)(tf.constant([5]))
    files = TemporalEnsemble(3, 2, path=tmp_path / "other")
    files.update([0], np.ones([1, 2]))
    files.end_epoch()
    with pytest.raises(ValueError, match=r"has the shape \(3, 2\), expected \(3, 4\)"):
        TemporalEnsemble(3, 4, path=tmp_path / "other")
    (file,) = (tmp_path / "other").glob("run-*/means-1.npy")
    file.unlink()
    with pytest.raises(ValueError, match="ends before the checkpoint: epoch 2"):
        files.resume()

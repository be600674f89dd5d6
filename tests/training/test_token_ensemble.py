"""Means of what was said of tokens: exact with all words, kept words else, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.training import TemporalEnsemble, TokenEnsemble

_RNG = np.random.default_rng(0)


def _dense(targets, size):
    found = np.zeros([len(targets.counts), size])
    rows = np.arange(len(found))[:, None]
    # Places without a word have probability 0.
    np.add.at(found, (rows, targets.words.numpy()), targets.probs.numpy())
    return found


@pytest.fixture(params=["memory", "files"], name="path")
def _path(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "means"


@pytest.mark.parametrize("variant", ["thesis", "authors"])
@pytest.mark.parametrize("k", [5, 8])
def test_with_all_words_it_is_the_temporal_ensemble(variant, k, path):
    ours = TokenEnsemble(6, k, path=path, variant=variant)
    exact = TemporalEnsemble(6, 5, variant=variant)
    places = np.arange(6)
    for epoch in range(4):
        # One is missed now and then.
        rows = np.array([i for i in range(6) if (i + epoch) % 4])
        probs = _RNG.dirichlet(np.ones(5), len(rows)).astype("float32")
        for each in (ours, exact):
            each.update(rows, probs)
            each.end_epoch()
        found, expected = (each.targets(places) for each in (ours, exact))
        np.testing.assert_array_equal(found.counts, expected.counts)
        np.testing.assert_allclose(_dense(found, 5), expected.means, atol=1e-6)


def test_the_largest_are_kept(path):
    ensemble = TokenEnsemble(2, 2, path=path)
    first = np.float32([[0.5, 0.3, 0.2, 0.0], [0.25, 0.25, 0.25, 0.25]])
    second = np.float32([[0.1, 0.0, 0.3, 0.6], [0.7, 0.1, 0.1, 0.1]])
    for probs in (first, second):
        ensemble.update([0, 1], probs)
        ensemble.end_epoch()
    found = _dense(ensemble.targets([0, 1]), 4)
    # Of the first 0: (0.5 + 0) / 2, as the second epoch kept 3 and 2 of it.
    np.testing.assert_allclose(found[0], [0.25, 0, 0, 0.3], atol=1e-6)
    np.testing.assert_allclose(found[1, 0], (0.25 + 0.7) / 2, atol=1e-6)


def test_padding_does_not_count(path):
    ensemble = TokenEnsemble(3, 2, path=path)
    probs = _RNG.dirichlet(np.ones(4), 4).astype("float32")
    ensemble.update([1, 0, 0, 0], probs, [True, True, False, False])
    ensemble.end_epoch()
    found = ensemble.targets([0, 1, 2])
    np.testing.assert_array_equal(found.counts, [1, 1, 0])
    np.testing.assert_allclose(found.probs[0], np.sort(probs[1])[::-1][:2])


def test_replicas_and_checkpoints(path, tmp_path):
    strategy = distribution.strategy("mirrored")
    with strategy.scope():
        ensemble = TokenEnsemble(4, 2, path=path)
    probs = tf.constant(_RNG.dirichlet(np.ones(3), 4), tf.float32)

    @tf.function
    def step():
        def own():
            context = tf.distribute.get_replica_context()
            start = 2 * tf.cast(context.replica_id_in_sync_group, tf.int32)
            places = tf.stack([start, start + 1])
            ensemble.update(places, tf.gather(probs, places))

        strategy.run(own)

    step()
    saved = tf.train.Checkpoint(ensemble=ensemble).save(str(tmp_path / "c"))
    ensemble.end_epoch()
    again = TokenEnsemble(4, 2, path=path)
    again.update([0], probs[:1])
    if path is None:
        again.end_epoch()
    tf.train.Checkpoint(ensemble=again).restore(saved).assert_consumed()
    again.resume()
    again.end_epoch()
    top = np.sort(probs, axis=1)[:, ::-1][:, :2]
    for each in (ensemble, again):
        np.testing.assert_allclose(each.targets([0, 1, 2, 3]).probs, top)


def test_what_was_seen_after_a_checkpoint_is_cut_off(tmp_path):
    probs = _RNG.dirichlet(np.ones(4), 6).astype("float32")
    whole, killed = (TokenEnsemble(3, 2, path=tmp_path / name) for name in "ab")
    for each in (whole, killed):
        each.update([0, 1], probs[:2])
        each.end_epoch()
        each.update([0], probs[2:3])
    saved = [variable.numpy() for variable in killed.variables]
    killed.update([1, 2], probs[4:])
    killed.end_epoch()
    other = TokenEnsemble(3, 2, path=tmp_path / "b")
    for variable, value in zip(other.variables, saved, strict=True):
        variable.assign(value)
    other.resume()
    for each in (whole, other):
        each.update([2], probs[3:4])
        each.end_epoch()
    found, expected = (each.targets([0, 1, 2]) for each in (other, whole))
    for own, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, wanted)


def test_mistakes():
    ensemble = TokenEnsemble(3, 2)
    with pytest.raises(ValueError, match=r"targets: `ids` must lie in \[0, 3\), found"):
        ensemble.targets([3])
    with pytest.raises(ValueError, match=r"TokenEnsemble\.update"):
        ensemble.update([0, 1], np.ones([1, 4]))
    with pytest.raises(ValueError, match="`k` must be"):
        TokenEnsemble(3, 0)


def test_files_of_another_text_are_refused(tmp_path):
    ensemble = TokenEnsemble(3, 2, path=tmp_path)
    ensemble.update([0], np.float32([[0.5, 0.5]]))
    ensemble.end_epoch()
    for make, message in (
        (lambda: TokenEnsemble(4, 2, path=tmp_path), r"TokenEnsemble: .* \(3,\) of"),
        (lambda: TokenEnsemble(3, 3, path=tmp_path), "of other examples or classes"),
        (lambda: TemporalEnsemble(3, 2, path=tmp_path), r"expected \(3, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    (file,) = tmp_path.glob("run-*/means-1.npy")
    file.unlink()
    with pytest.raises(
        ValueError, match=r"TokenEnsemble: .* ends before the checkpoint"
    ):
        ensemble.resume()

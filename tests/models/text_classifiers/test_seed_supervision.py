"""From labels of seeds to a classifier: stages, selections, deletion, resumes."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.labelling import select_confident
from rlm_tf.layers import TfidfBag
from rlm_tf.models import SeedSupervision, TextClassifier
from rlm_tf.models.text_classifiers import seed_supervision, selecting, stages

_SEEDS = (2, 3)
_SIZE, _LENGTH = 44, 12


def _documents(number=240, wrong=0.3, seed=0):
    """Documents of two classes, their labels by seeds, and places of these.

    Words 4 to 13 tell the first class, 14 to 23 the second; two of three documents have
    a seed, of the other class in a share of cases.
    """
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, number)
    own = rng.integers(4, 14, [number, 3]) + 10 * true[:, np.newaxis]
    tokens = np.concatenate(
        [own, rng.integers(24, _SIZE, [number, _LENGTH - 4])], axis=1
    )
    tokens = np.concatenate([tokens, np.zeros([number, 1], int)], axis=1)
    labels = np.where(rng.random(number) < wrong, 1 - true, true)
    labels[rng.random(number) < 1 / 3] = -1
    tokens[:, -1] = np.where(labels >= 0, 2 + labels, 24)
    return tokens.astype(np.int32), labels, true, np.isin(tokens, _SEEDS)


def _maker(tokens, rate=0.1):
    def make(seed):
        bag = TfidfBag(_SIZE, 2, seed=seed)
        bag.adapt(tokens)
        model = TextClassifier(bag, 2, head=False, seed=seed)
        model.compile(keras.optimizers.Adam(rate))
        return model

    return make


def _watched(watch):
    """Predictions and losses of one epoch, of documents that are watched."""
    number = 0 if watch is None else len(watch._labels)
    return np.zeros([1, number]), np.zeros([1, number])


def test_stages_of_the_procedure(monkeypatch):
    """Which documents and labels each training gets."""
    tokens, labels, _, places = _documents()
    seen = []

    def training(make, data, epochs, everything, folder, *, watch=None, **options):
        batches = data.source
        passes = epochs * data.passes
        seen.append((batches, passes, data.transform, watch is not None, make().seed))
        rng = np.random.default_rng(len(seen))
        probs = rng.dirichlet([1, 1], len(everything)).astype(np.float32)
        return None, stages.Said(probs, *_watched(watch))

    monkeypatch.setattr(seed_supervision, "train", training)
    procedure = SeedSupervision(
        _maker(tokens),
        probe_deletion={"ratio": 0.5},
        deletion={"ratio": 0.0, "seeds": "only"},
        epochs=3,
        probe_epochs=2,
        self_epochs=1,
        iterations=2,
        seed=7,
    )
    found = procedure.fit(tokens, labels, places=places)
    assert [epochs for _, epochs, *_ in seen] == [2, 3, 1, 1]
    assert [watched for *_, watched, _ in seen] == [True, False, False, False]
    assert [seed for *_, seed in seen] == [7000, 7001, 7002, 7003]
    labelled = np.flatnonzero(labels >= 0)
    np.testing.assert_array_equal(seen[0][0].rows, labelled)
    assert seen[0][2].ratio == 0.5 and seen[0][2].seeds == "alike"
    assert seen[1][2].seeds == "only"
    # What the probe is surest of, of each class a half.
    probs = np.random.default_rng(1).dirichlet([1, 1], len(labelled)).astype("f4")
    own = probs[np.arange(len(labelled)), labels[labelled]]
    np.testing.assert_allclose(found.confidence[labelled], own)
    assert np.isnan(found.confidence[labels < 0]).all()
    expected = labelled[select_confident(own, labels[labelled])]
    np.testing.assert_array_equal(np.flatnonzero(found.selected), expected)
    np.testing.assert_array_equal(seen[1][0].rows, expected)
    np.testing.assert_array_equal(seen[1][2].places, places[expected])
    # Then also half of its own predictions of the rest, then all.
    others = np.flatnonzero(~found.selected)
    for stage, share in ((2, 0.5), (3, 1.0)):
        said = np.random.default_rng(stage).dirichlet([1, 1], 240).astype("f4")
        best = said.argmax(axis=1)[others]
        more = others[select_confident(said.max(axis=1)[others], best, fraction=share)]
        batches = seen[stage][0]
        rows = np.concatenate([expected, more])
        np.testing.assert_array_equal(batches.rows, rows)
        np.testing.assert_array_equal(batches.tokens, tokens)
        wanted = np.concatenate([labels[expected], said.argmax(axis=1)[more]])
        np.testing.assert_array_equal(batches.labels, wanted)
    assert found.rounds.shape == (3, 240)


def test_few_documents_are_read_more_often(monkeypatch):
    tokens, labels, _, places = _documents()
    seen = []

    def training(
        make, data, epochs, everything, folder, *, watch=None, others=(), **options
    ):
        seen.append((epochs, data.steps, others))
        probs = np.full([len(everything), 2], 0.5, np.float32)
        return None, stages.Said(probs, *_watched(watch))

    monkeypatch.setattr(seed_supervision, "train", training)
    procedure = SeedSupervision(
        _maker(tokens),
        epochs=2,
        probe_epochs=9,
        self_epochs=1,
        least_steps=20,
        iterations=1,
        callbacks=lambda steps: [steps],
    )
    procedure.fit(tokens, labels, places=places)
    probe, first, own = seen
    # About 160 labels, half of them, all: 5, 3 and 8 steps an epoch.
    assert [epochs for epochs, *_ in seen] == [9, 7, 3]
    assert all(steps * epochs >= 20 for epochs, steps, _ in seen)
    assert all(others == [steps * epochs] for epochs, steps, others in seen)
    assert probe[1] > first[1] and own[1] > first[1]


@pytest.mark.parametrize("pool", ["refreshed", "accumulated"])
def test_what_is_kept_of_the_pool(monkeypatch, pool):
    tokens, labels, *_ = _documents(60)
    sizes = []

    def training(make, data, *_, watch=None, **__):
        sizes.append(len(data.source.labels))
        # Of one class each time, so that shares are of one group.
        probs = np.zeros([60, 2], np.float32)
        rng = np.random.default_rng(len(sizes))
        probs[:, 0] = 0.5 + rng.random(60) / 2
        return None, stages.Said(probs, *_watched(watch))

    monkeypatch.setattr(seed_supervision, "train", training)
    procedure = SeedSupervision(_maker(tokens), select="all", iterations=4, pool=pool)
    found = procedure.fit(tokens, labels)
    base, rest = int((labels >= 0).sum()), int((labels < 0).sum())
    assert found.selected.sum() == sizes[0] == base
    more = [size - base for size in sizes[1:]]
    shares = [round(share * rest) for share in (0.25, 0.5, 0.75, 1.0)]
    if pool == "refreshed":
        assert more == shares
    else:
        assert more[0] == shares[0] and more[-1] == rest
        assert all(a >= b for a, b in zip(more, shares, strict=True))
    assert np.isnan(found.confidence).all()
    # Nothing changes any more: it ends after the second training.
    procedure = SeedSupervision(
        _maker(tokens), select="all", iterations=4, stop_below=0.01
    )
    assert len(procedure.fit(tokens, labels).rounds) == 2


@pytest.mark.slow
def test_deletion_finds_wrong_labels():
    """A probe without deletion learns the seed; one with it sees what else is there."""
    tokens, labels, true, places = _documents(600)
    known = labels >= 0
    wrong = {}
    for name, deletion in (("none", None), ("random", {"ratio": 0.6})):
        found = SeedSupervision(
            _maker(tokens),
            probe_deletion=deletion,
            deletion=deletion,
            fraction=0.7,
            epochs=6,
            iterations=1,
        ).fit(tokens, labels, places=places)
        wrong[name] = np.mean((labels != true)[found.selected])
        assert found.selected.sum() == pytest.approx(0.7 * known.sum(), abs=1)
        assert found.probs.shape == (600, 2)
        # What stopping after each epoch would have been sure of; the last is what is.
        sure = np.exp(-found.probe_losses)
        assert sure.shape == (6, 600) and np.isnan(sure[:, ~known]).all()
        np.testing.assert_allclose(sure[-1], found.confidence, rtol=1e-5)
    assert (
        wrong["random"] < 0.5 * wrong["none"] < 0.5 * np.mean((labels != true)[known])
    )
    right = found.probs.argmax(axis=1) == true
    assert right.mean() > 0.9


@pytest.mark.parametrize("select", ["learning_order", "loss"])
def test_other_selections(select):
    tokens, labels, true, places = _documents(300)
    found = SeedSupervision(
        _maker(tokens),
        select=select,
        probe_deletion={"ratio": 0.0, "seeds": "only"},
        epochs=3,
        iterations=0,
    ).fit(tokens, labels, places=places)
    known = labels >= 0
    assert 0.4 < found.selected.sum() / known.sum() < 0.95
    kept = np.mean((labels != true)[found.selected])
    assert kept < 0.5 * np.mean((labels != true)[known])
    assert (
        found.rounds.shape == (1, 300) and not np.isnan(found.confidence[known]).any()
    )


@pytest.mark.landing
def test_a_killed_procedure_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    tokens, labels, _, places = _documents(120)

    def procedure():
        return SeedSupervision(
            _maker(tokens),
            probe_deletion={"ratio": 0.5},
            epochs=3,
            iterations=2,
            seed=1,
        )

    def fit(folder):
        return procedure().fit(tokens, labels, places=places, folder=folder)

    whole = fit(tmp_path / "whole")
    free = procedure().fit(tokens, labels, places=places)
    np.testing.assert_array_equal(whole.probs, free.probs)
    calls = {"left": 5}
    normal = stages.Watch.on_epoch_end

    class KilledError(Exception):
        pass

    def dying(self, epoch, logs=None):
        normal(self, epoch, logs)
        if epoch == 1 and calls.pop("left", 0):
            raise KilledError

    monkeypatch.setattr(stages.Watch, "on_epoch_end", dying)
    with pytest.raises(KilledError):
        fit(tmp_path / "killed")
    again = fit(tmp_path / "killed")
    # All is there; nothing is trained a third time.
    monkeypatch.setattr(TextClassifier, "fit", None)
    read = fit(tmp_path / "killed")
    for found in (again, read):
        for name in ("probs", "selected", "confidence", "rounds"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
        for weight, wanted in zip(
            found.model.get_weights(), whole.model.get_weights(), strict=True
        ):
            np.testing.assert_array_equal(weight, wanted)


def test_mistakes():
    make = _maker(np.zeros([2, 3], int))
    with pytest.raises(ValueError, match="select"):
        SeedSupervision(make, select="best")
    with pytest.raises(ValueError, match="iterations"):
        SeedSupervision(make, iterations=-1)
    procedure = SeedSupervision(make)
    with pytest.raises(ValueError, match="no document has a label"):
        procedure.fit([[1, 2]], [-1])
    with pytest.raises(ValueError, match=r"\[N, T\] and `labels` \[N\], found"):
        procedure.fit([[1, 2]], [0, 1])
    with pytest.raises(ValueError, match=r"`places` must be \[1, 2\], as the tokens"):
        procedure.fit([[1, 2]], [0], places=[[True]])


# === Cross-fitting ===


def test_no_probe_has_seen_what_it_judges(tmp_path):
    """Of words that are each in one document, others say nothing."""
    number = 36
    tokens = np.arange(4, 4 + number, dtype=np.int32)[:, np.newaxis].repeat(3, 1)
    labels = np.arange(number) % 2
    labels[-4:] = -1
    procedure = SeedSupervision(
        _own_maker(tokens), epochs=12, batch_size=4, iterations=0, select="all"
    )
    found = procedure.cross_fitted(tokens, labels, folds=4, folder=tmp_path)
    assert np.isnan(found[-4:]).all() and not np.isnan(found[:-4]).any()
    seen = procedure.fit(tokens, labels).probs
    known = labels >= 0
    own = np.arange(number)[known], labels[known]
    assert (seen[own] > 0.8).all() and (found[own] < 0.7).all()
    # What is stored is read.
    np.testing.assert_array_equal(
        procedure.cross_fitted(tokens, labels, folds=4, folder=tmp_path), found
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"fold{i}" for i in range(4)
    ]
    # But not for other labels, which nothing says of what is stored.
    with pytest.raises(ValueError, match="fold0 holds a training of other documents"):
        procedure.cross_fitted(
            tokens, np.where(known, 1 - labels, -1), folds=4, folder=tmp_path
        )


def test_a_class_that_no_other_fold_has_is_not_judged():
    tokens = np.arange(4, 16, dtype=np.int32)[:, np.newaxis].repeat(3, 1)
    labels = np.array([0] * 9 + [1] * 3)
    # Three times the same text is in one fold.
    tokens[9:] = tokens[9]
    procedure = SeedSupervision(_own_maker(tokens), epochs=1, batch_size=4)
    found = procedure.cross_fitted(tokens, labels, folds=3)
    assert np.isnan(found[9:]).all() and not np.isnan(found[:9]).any()


def test_trainings_in_folders_are_of_one_call(tmp_path):
    tokens, _, true, _ = _documents(40)
    options = {"select": "all", "epochs": 1, "iterations": 0, "batch_size": 8}

    def fit(labels=true, tokens=tokens, **others):
        procedure = SeedSupervision(_maker(tokens), **{**options, **others})
        return procedure.fit(tokens, labels, folder=tmp_path).probs

    # What a kill leaves of the file that says so is no other training.
    (tmp_path / "training1").mkdir()
    (tmp_path / "training1" / "identity.part").write_text("a")
    first = fit()
    assert not (tmp_path / "training1" / "identity.part").exists()
    np.testing.assert_array_equal(fit(), first)
    others = [
        {"labels": 1 - true},
        {"tokens": tokens[::-1].copy()},
        {"epochs": 2},
        {"seed": 1},
        {"deletion": {"ratio": 0.5}},
    ]
    for other in others:
        with pytest.raises(ValueError, match="other documents, labels or settings"):
            fit(**other)


def test_texts_without_words_are_not_learnt_from(monkeypatch):
    tokens, _, true, _ = _documents(40)
    tokens, labels = tokens.copy(), true.copy()
    tokens[-10:], labels[-20:] = 0, -1
    seen = []

    own_labels = selecting.own_labels

    def spy(*given):
        seen.append(own_labels(*given))
        return seen[-1]

    monkeypatch.setattr(selecting, "own_labels", spy)
    options = {"select": "all", "epochs": 1, "iterations": 1}
    SeedSupervision(_maker(tokens), **options).fit(tokens, labels)
    (own,) = seen
    assert (own[-20:-10] >= 0).all() and (own[-10:] == -1).all()


def _own_maker(tokens):
    def make(seed):
        bag = TfidfBag(60, 2, seed=seed)
        bag.adapt(tokens)
        model = TextClassifier(bag, 2, head=False, seed=seed)
        model.compile(keras.optimizers.Adam(0.1))
        return model

    return make


def test_weights_of_labels_and_callbacks_of_trainings():
    tokens, _, true, _ = _documents(120)
    # The same documents with both labels, one of which weighs more.
    both = np.concatenate([true, 1 - true])
    steps = []

    def callbacks(number):
        steps.append(number)
        return [keras.callbacks.TerminateOnNaN()]

    procedure = SeedSupervision(
        _maker(tokens), select="all", epochs=5, iterations=0, callbacks=callbacks
    )
    weights = np.repeat([10.0, 0.1], len(true))
    doubled = np.concatenate([tokens, tokens])
    found = procedure.fit(doubled, both, weights=weights)
    assert np.mean(found.probs.argmax(axis=1)[: len(true)] == true) > 0.9
    assert steps == [5 * -(-len(both) // 32)]
    with pytest.raises(ValueError, match=r"`weights` must be \[240\] numbers"):
        procedure.fit(doubled, both, weights=weights[:5])


def test_confidence_on_what_deletion_leaves(monkeypatch):
    tokens, labels, _, places = _documents(60)
    seen = []

    def training(make, data, epochs, everything, folder, *, watch=None, **options):
        seen.append(everything)
        rng = np.random.default_rng(0)
        probs = rng.dirichlet([1, 1], len(everything)).astype(np.float32)
        return None, stages.Said(probs, *_watched(watch))

    monkeypatch.setattr(seed_supervision, "train", training)
    options = {"probe_deletion": {"ratio": 0.0, "seeds": "only"}, "iterations": 0}
    for corrupted in (False, True):
        SeedSupervision(_maker(tokens), corrupted=corrupted, **options).fit(
            tokens, labels, places=places
        )
    labelled = tokens[labels >= 0]
    np.testing.assert_array_equal(seen[0], labelled)
    assert not np.isin(seen[2], _SEEDS).any()
    for row, own in zip(seen[2], labelled, strict=True):
        kept = own[~np.isin(own, _SEEDS)]
        assert row[: np.count_nonzero(row)].tolist() == kept[kept > 0].tolist()

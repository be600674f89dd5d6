"""Batches of images: draws by example alone, moves and mixtures by hand, mistakes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import ImageBatches, LabelledImages
from rlm_tf.data.images import augmix as mixing
from rlm_tf.data.images.moved import moved
from rlm_tf.training import ResumableBatches

_RNG = np.random.default_rng(0)
_DATA = LabelledImages(
    _RNG.integers(0, 256, [10, 6, 6, 2], np.uint8),
    _RNG.integers(0, 3, 10).astype(np.int32),
    ("a", "b", "c"),
)
_IMAGES = tf.constant(_DATA.images, tf.float32)


def _by_id(batches, epoch=0, start=0):
    data = ResumableBatches(batches)
    data.seek(epoch, start)
    found = {}
    for (x, ids), labels in data.dataset:
        for image, own, label in zip(x, ids, labels, strict=True):
            assert int(own) not in found
            found[int(own)] = np.array(image), np.array(label)
    return found


# === Order and draws ===


@pytest.mark.parametrize(
    "options",
    [
        {"shift": 1, "flip": True},
        {"rotation": 20.0},
        {"mixing": "mixup", "shift": 1},
        {"mixing": "cutmix", "flip": True},
        {"mixing": "augmix"},
    ],
)
def test_draws_depend_on_seed_epoch_and_id_alone(options):
    def make(size, seed=3):
        return ImageBatches(_DATA, size, seed=seed, **options)

    (x, _), _ = make(4).dataset().element_spec
    assert x.shape == [None, 6, 6, 2]
    alone = _by_id(make(4))
    assert set(alone) == set(range(10))
    for other, same in (
        (_by_id(make(3)), True),
        (_by_id(make(4), start=1), True),
        (_by_id(make(4), epoch=1), False),
        (_by_id(make(4, seed=4)), False),
    ):
        equal = [
            np.allclose(other[own][0], alone[own][0], atol=1e-4)
            and np.allclose(other[own][1], alone[own][1])
            for own in other
        ]
        assert all(equal) if same else not all(equal)


def test_what_is_not_augmented_is_scaled():
    batches = ImageBatches(_DATA, 4, mean=(0.5, 0.2), deviation=(2.0, 0.5))
    expected = (_DATA.images / 255 - [0.5, 0.2]) / [2.0, 0.5]
    for own, (image, label) in _by_id(batches).items():
        np.testing.assert_allclose(image, expected[own], atol=1e-6)
        assert label == _DATA.labels[own]
    whole = [x for x, _ in batches.in_order()]
    np.testing.assert_allclose(np.concatenate(whole), expected, atol=1e-6)
    x, labels = next(iter(ImageBatches(_DATA, 4, with_ids=False).dataset()))
    assert x.shape == (4, 6, 6, 2) and labels.shape == (4,)
    assert batches.steps == 3


@pytest.mark.landing
def test_shifts_and_flips_are_those_of_padded_images():
    found = {}
    for epoch in range(30):
        batches = ImageBatches(_DATA, 10, shift=1, flip=True, seed=epoch)
        for own, (image, _) in _by_id(batches).items():
            candidates = {
                (down, right, flip): _shifted(_DATA.images[own], down, right, flip)
                for down in (-1, 0, 1)
                for right in (-1, 0, 1)
                for flip in (False, True)
            }
            (which,) = [
                key
                for key, each in candidates.items()
                if np.array_equal(each, np.round(image * 255))
            ]
            found[which] = found.get(which, 0) + 1
    # Of 300 draws about 17 each.
    assert len(found) == 18 and max(found.values()) < 40


def _shifted(image, down, right, flip):
    image = image[:, ::-1] if flip else image
    padded = np.pad(image, [(1, 1), (1, 1), (0, 0)])
    return padded[1 - down : 7 - down, 1 - right : 7 - right]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_turns_are_those_of_numpy(turns):
    for exact in (False, True):
        found = moved(_IMAGES, angle=turns * math.pi / 2, exact=exact)
        expected = np.rot90(_DATA.images, turns, axes=(1, 2))
        np.testing.assert_allclose(found, expected, atol=0.05)


def test_shears_move_rows_and_columns():
    row = np.zeros([1, 5, 5, 1], np.float32)
    row[0, :, 2] = 1
    found = moved(tf.constant(row), shear_x=1.0)[0, :, :, 0]
    np.testing.assert_allclose(found, np.eye(5), atol=1e-6)
    column = moved(tf.constant(row.transpose(0, 2, 1, 3)), shear_y=1.0)[0, :, :, 0]
    np.testing.assert_allclose(column, np.eye(5), atol=1e-6)


# === Mixtures ===


def test_mixup_by_its_labels():
    found = _by_id(ImageBatches(_DATA, 5, mixing="mixup", alpha=0.4, seed=1))
    shares = []
    for own, (image, probs) in found.items():
        assert probs.shape == (3,) and probs.sum() == pytest.approx(1.0)
        pixel = np.round(image * 255, 2)
        fits = []
        for other in range(10):
            pair = _DATA.images[[own, other]].astype(float)
            difference = pair[0] - pair[1]
            if not difference.any():
                continue
            share = ((pixel - pair[1]) * difference).sum() / (difference**2).sum()
            error = np.abs(share * pair[0] + (1 - share) * pair[1] - pixel).max()
            fits.append((error, share, other))
        error, share, other = min(fits)
        if error < 0.1:
            expected = share * np.eye(3)[_DATA.labels[own]]
            expected += (1 - share) * np.eye(3)[_DATA.labels[other]]
            np.testing.assert_allclose(probs, expected, atol=2e-3)
            shares.append(share)
        else:  # Mixed with itself.
            np.testing.assert_allclose(pixel, _DATA.images[own], atol=0.1)
    assert len(shares) > 5 and np.ptp(shares) > 0.1


def test_cutmix_has_as_much_of_a_label_as_of_its_pixels():
    found = _by_id(ImageBatches(_DATA, 5, mixing="cutmix", seed=2))
    for own, (image, probs) in found.items():
        pixel = np.round(image * 255)
        kept = (pixel == _DATA.images[own]).all(axis=-1)
        inside = [
            other
            for other in range(10)
            if (pixel == _DATA.images[other]).all(axis=-1)[~kept].all()
        ]
        if kept.all():
            continue
        (other,) = inside
        expected = kept.mean() * np.eye(3)[_DATA.labels[own]]
        expected += (1 - kept.mean()) * np.eye(3)[_DATA.labels[other]]
        np.testing.assert_allclose(probs, expected, atol=1e-5)
        rows, columns = np.nonzero(~kept)
        box = (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
        assert box == (~kept).sum()


def test_distortions_by_hand():
    images = tf.constant([[[[10.0], [110.0]], [[60.0], [10.0]]]])
    np.testing.assert_allclose(
        tf.reshape(mixing.autocontrast(images), [-1]), [0, 255, 127.5, 0]
    )
    level = tf.constant([0.25])
    np.testing.assert_allclose(
        tf.reshape(mixing.solarised(images, level), [-1]), [10, 110, 60, 10]
    )
    np.testing.assert_allclose(
        tf.reshape(mixing.solarised(images, tf.constant([0.75])), [-1]),
        [10, 145, 60 if 60 < 64 else 195, 10],
    )
    # Three bits are left: steps of 32.
    np.testing.assert_allclose(
        tf.reshape(mixing.posterised(images, level), [-1]), [0, 96, 32, 0]
    )
    flat = tf.fill([1, 2, 2, 1], 7.0)
    for make in (mixing.autocontrast, mixing.equalised):
        np.testing.assert_array_equal(make(flat), flat)


def test_equalised_images_have_all_levels_about_as_often():
    rng = np.random.default_rng(0)
    images = np.minimum(rng.exponential(20, [2, 64, 64, 2]), 255).astype(np.float32)
    images = np.round(images)
    found = mixing.equalised(tf.constant(images)).numpy()
    for image, given in zip(found, images, strict=True):
        for channel in (0, 1):
            order = np.argsort(given[..., channel].ravel(), kind="stable")
            assert np.all(np.diff(image[..., channel].ravel()[order]) >= 0)
            assert 110 < image[..., channel].mean() < 145
    assert found.min() >= 0 and found.max() <= 255


def test_augmix_mixes_with_its_weights():
    draws = tf.random.stateless_uniform([10, mixing.NUM_DRAWS], [1, 2])
    weights = tf.constant([[0.2, 0.3, 0.5, 1.0]] * 10)
    np.testing.assert_allclose(mixing.augmix(_IMAGES, draws, weights), _IMAGES)
    # Chains of one distortion, solarising at its most.
    draws = np.zeros([10, 3, 10], np.float32)
    draws[:, :, :9] = np.tile([8.5 / 9, 0.999, 0.9], 3)
    weights = tf.constant([[0.2, 0.3, 0.5, 0.25]] * 10)
    found = mixing.augmix(_IMAGES, tf.constant(draws.reshape(10, -1)), weights)
    level = tf.fill([10], 0.1 / 10 + 0.999 * 2.9 / 10)
    expected = 0.25 * _IMAGES + 0.75 * mixing.solarised(_IMAGES, level)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_mistakes():
    with pytest.raises(ValueError, match=r"images must be uint8"):
        ImageBatches(_DATA._replace(images=_DATA.images / 2), 4)
    with pytest.raises(ValueError, match=r"labels must be 10 integers from 0 on"):
        ImageBatches(_DATA._replace(labels=_DATA.labels[:9]), 4)
    with pytest.raises(ValueError, match=r"2 names of classes, and a label 2"):
        ImageBatches(_DATA._replace(names=("a", "b")), 4)
    with pytest.raises(ValueError, match=r"`mixing` must be"):
        ImageBatches(_DATA, 4, mixing="blend")
    with pytest.raises(ValueError, match=r"`deviation` must be positive"):
        ImageBatches(_DATA, 4, deviation=0.0)

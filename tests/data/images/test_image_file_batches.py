"""Images read as they are needed: cuts by hand, order, resumes, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import ImageFileBatches, ImageFiles, image_folder
from rlm_tf.training import ResumableBatches


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory) -> ImageFiles:
    """Seven images of other sizes, of two classes; each has a grey of its own."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(7):
        place = folder / ("cat" if number % 2 else "dog")
        place.mkdir(exist_ok=True)
        image = np.full([20 + number, 30, 3], 30 * number, np.uint8)
        image[:, :15, 0] = 255  # red on the left
        (place / f"{number}.png").write_bytes(tf.io.encode_png(image).numpy())
    return image_folder(folder)


def _seen(batches, epoch=0, start=0):
    found = {}
    for (images, ids), labels in batches.dataset(epoch, start):
        for own, image, label in zip(ids.numpy(), images, labels, strict=True):
            found[int(own)] = (image.numpy(), int(label))
    return found


def test_each_image_is_a_cut_of_itself(files):
    batches = ImageFileBatches(files, 3, 16, seed=1)
    assert batches.steps == 3 and batches.num_classes == 2
    found = _seen(batches)
    assert sorted(found) == list(range(7))
    for own, (image, label) in found.items():
        assert image.shape == (16, 16, 3) and label == files.labels[own]
        whole = tf.io.decode_png(tf.io.read_file(files.paths[own])).numpy()
        # Blue is the same all over; red is left or, of the mirrored, right.
        np.testing.assert_allclose(image[..., 2], whole[0, 0, 2] / 255, atol=1e-5)
    again, other = _seen(batches), _seen(batches, epoch=1)
    changed = 0
    for own, (image, _) in found.items():
        np.testing.assert_array_equal(image, again[own][0])
        changed += not np.array_equal(image, other[own][0])
    assert changed >= 5


def test_cuts_by_hand(files):
    assert files.part([2, 0]).paths == (files.paths[2], files.paths[0])
    batches = ImageFileBatches(files, 1, 8)
    image = tf.reshape(tf.range(20 * 30 * 3), [20, 30, 3])
    # The whole area, square: all rows, 20 columns from the sixth on of 0 to 10.
    square = -np.log(3 / 4) / (np.log(4 / 3) - np.log(3 / 4))
    draws = tf.constant([(400 / 600 - 0.08) / 0.92, square, 0.5, 0.5, 0.9])
    found = batches._cut(image, draws)
    expected = tf.image.resize(image[:, 5:25], [8, 8], antialias=True)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    mirrored = batches._cut(image, tf.tensor_scatter_nd_update(draws, [[4]], [0.1]))
    np.testing.assert_allclose(mirrored, expected[:, ::-1], atol=1e-3)


def test_what_is_drawn_depends_on_the_example_alone(files):
    several = _seen(ImageFileBatches(files, 3, 8, seed=2), epoch=4)
    single = _seen(ImageFileBatches(files, 1, 8, seed=2), epoch=4)
    for own, (image, _) in several.items():
        np.testing.assert_array_equal(image, single[own][0])
    # A run that goes on reads what is left.
    data = ResumableBatches(ImageFileBatches(files, 3, 8, seed=2))
    data.seek(4, 1)
    rest = [ids.numpy() for (_, ids), _ in data.dataset.take(2)]
    whole = [
        ids.numpy() for (_, ids), _ in ImageFileBatches(files, 3, 8, seed=2).dataset(4)
    ]
    np.testing.assert_array_equal(np.concatenate(rest), np.concatenate(whole[1:]))


def test_the_middle_is_judged_on(files):
    batches = ImageFileBatches(files, 4, 7, mean=0.5, deviation=(1.0, 2.0, 4.0))
    found = [(x.numpy(), y.numpy()) for x, y in batches.in_order()]
    np.testing.assert_array_equal(np.concatenate([y for _, y in found]), files.labels)
    image = tf.io.decode_png(tf.io.read_file(files.paths[0])).numpy()
    side = min(image.shape[:2])
    left = (30 - side) // 2
    whole = tf.image.resize(image[:, left : left + side], [8, 8], antialias=True)
    expected = (whole[0:7, 0:7] / 255 - 0.5) / np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(found[0][0][0], expected, atol=1e-4)


def test_mistakes(files, tmp_path):
    with pytest.raises(ValueError, match="a label for each path, found 0 and 0"):
        ImageFileBatches(ImageFiles((), np.zeros([0], np.int32), ("a",)), 1)
    with pytest.raises(ValueError, match="deviation"):
        ImageFileBatches(files, 1, deviation=0.0)
    for number, content in enumerate((b"", b"no image")):
        (tmp_path / f"{number}.png").write_bytes(content)
        wrong = ImageFiles((str(tmp_path / f"{number}.png"),), np.zeros(1, int), ("a",))
        for data in (
            ImageFileBatches(wrong, 1, 8).dataset(),
            ImageFileBatches(wrong, 1, 8).in_order(),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{number}\.png"):
                next(iter(data))

"""Several workers agree when to write a checkpoint, and when to end."""

from __future__ import annotations

import pytest
import tensorflow as tf

from rlm_tf.training import resume
from rlm_tf.training.checkpoint import CheckpointStore
from rlm_tf.workers import Workers
from tests.training.toy import toy_batches, train

pytestmark = pytest.mark.eager


class Chief(Workers):
    """One of two workers, of which the other says what the test wants it to say.

    Attributes:
        answers: What the other says to question after question; then nothing.
    """

    answers: list[list[float]]

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        super().__init__(strategy)
        self.number = 2
        self.asked: list[int] = []

    def total(self, values):
        self.asked.append(len(values))
        other = [0.0] * len(values)
        # Time and interrupts are asked in pairs.
        if len(values) == 2 and self.answers:
            other = self.answers.pop(0)
        return [own + told for own, told in zip(values, other, strict=True)]


def _run(tmp_path, monkeypatch, answers, **options):
    monkeypatch.setattr(resume, "Workers", Chief)
    monkeypatch.setattr(resume, "_STEPS_BETWEEN_QUESTIONS", 2)
    monkeypatch.setattr(Chief, "answers", answers, raising=False)
    batches = resume.ResumableBatches(toy_batches(0))
    return train(tmp_path, batches=batches, callbacks=[], epochs=1, **options)


def test_all_end_where_one_was_interrupted(tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path, monkeypatch, [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    found = CheckpointStore(tmp_path / "checkpoints").load_latest()
    assert (found.state["epoch"], found.state["step"]) == (0, 4)


def test_a_checkpoint_is_due_when_one_says_so(tmp_path, monkeypatch):
    saved = []
    save = CheckpointStore.save

    def noted(store, state, *arguments):
        saved.append((state["epoch"], state["step"]))
        return save(store, state, *arguments)

    monkeypatch.setattr(CheckpointStore, "save", noted)
    _run(tmp_path, monkeypatch, [[0.0, 0.0], [1.0, 0.0]], every_seconds=1e6)
    assert saved == [(0, 2), (1, 0)]


def test_nobody_goes_on_where_another_could_not_write(tmp_path, monkeypatch):
    monkeypatch.setattr(Chief, "answers", [], raising=False)
    workers = Chief(tf.distribute.get_strategy())
    count = []

    def total(values):
        count.append(values)
        # The number of the checkpoint, that the folder is made, that all is written.
        return [values[0] + (len(count) == 3)]

    monkeypatch.setattr(workers, "total", total)
    store = CheckpointStore(tmp_path)
    with pytest.raises(OSError, match="could not be written by another worker"):
        store.save({}, {}, workers=workers)
    assert not list(tmp_path.iterdir())

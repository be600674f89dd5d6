"""Runs a program again and again while it kills itself; started by `test_kill.py`.

TensorFlow is imported once. Every run is a forked process of its own, forked before
TensorFlow has started any of its threads.
"""

from __future__ import annotations

import functools
import os
import pathlib
import pickle
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

import rlm_tf.training.checkpoint as checkpoint_module
from rlm_tf.averaging import (
    AveragingBegins,
    TailAverage,
    TriggeredAverage,
    WeightAveraging,
)
from rlm_tf.data import SentencePairs, VariableWindows
from rlm_tf.data.batches.contiguous_batches import contiguous_batches
from rlm_tf.distribution import logical_cpus, strategy
from rlm_tf.layers import PairDiscriminator
from rlm_tf.models import AWDLanguageModel, BootstrappedMutualInformation
from rlm_tf.models.language.recurrent_language_model import RecurrentLanguageModel
from rlm_tf.training import (
    LearningRateHalving,
    MetricsLog,
    ResumableBatches,
    SwitchPhase,
)
from tests.training import killed_distillation, killed_encoders, killed_language
from tests.training.toy import InterruptAt, noise, train


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def language_model(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Trains a recurrent language model with dropout, carried state and Adam."""
    tokens = np.random.default_rng(5).integers(0, 7, 4 * 3 * 6 - 2)
    return train(
        folder,
        model=RecurrentLanguageModel(7, 6, 1, dropout=0.3, seed=3),
        optimizer=keras.optimizers.Adam(0.02),
        batches=ResumableBatches(
            contiguous_batches(tokens, 4, 3, prefix=0), transform=noise
        ),
        epochs=3,
        callbacks=[
            MetricsLog(folder / "metrics.jsonl", every_steps=2),
            LearningRateHalving(min_gain=0.02),
        ],
        **options,
    )


def bmi(
    folder: pathlib.Path, *, finetune: bool = False, **options: Any
) -> dict[str, Any]:
    """Trains with BMI, Phase I in the first epoch and both in the second.

    With all that such a run has: dropouts, two optimisers, pairs, windows of random
    lengths, a trigger, averages. Finetuning has both phases and an average from the
    first step on.
    """
    rng = np.random.default_rng(5)
    # 40 sentences of up to three words.
    tokens = np.concatenate(
        [[*rng.integers(1, 7, size=rng.integers(1, 4)), 0] for _ in range(40)]
    ).astype(np.int32)
    model = AWDLanguageModel(
        7, embedding_width=3, units=(4, 3), mixture_components=2, base_window=8, seed=3
    )
    windows = VariableWindows(tokens, 4, 8, prefix=0, deviation=2.0, least=3, seed=1)
    valid = contiguous_batches(tokens[:40], 4, 5, prefix=0)
    average = TriggeredAverage(1, latest=windows.steps, rule="released")
    averaging = WeightAveraging(
        TailAverage(1) if finetune else average, valid.dataset(), monitor="nll"
    )
    switch = SwitchPhase(AveragingBegins(averaging))
    regularised = BootstrappedMutualInformation(
        model,
        discriminator=PairDiscriminator(3, hidden_dropout=0.2),
        phase_two="raml",
        clip_norm=0.5,
    )
    if finetune:
        regularised.set_phase(1)
    done = train(
        folder,
        model=regularised,
        optimizer=keras.optimizers.SGD(1.0),
        batches=ResumableBatches(
            windows, transform=SentencePairs(tokens, 0, 4, most_tokens=5, seed=2)
        ),
        callbacks=[averaging] if finetune else [averaging, switch],
        epochs=2,
        **options,
    )
    if not finetune:
        assert switch.switched_to == 1
        assert averaging.average.start_step <= windows.steps + 1
    return done


def bmi_finetuning(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """See `bmi`."""
    return bmi(folder, finetune=True, **options)


def mirrored(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Trains the toy model on two replicas."""
    devices = logical_cpus(2)
    return train(folder, strategy=strategy("mirrored", devices), epochs=2, **options)


class KillInValidation(keras.callbacks.Callback):
    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        kill()


class KillInLog(MetricsLog):
    """Dies in the middle of a line."""

    def _append(self, keys: Any, logs: Any) -> None:
        if keys["epoch"] == 1:
            with self.path.open("a", encoding="utf-8") as file:
                file.write('{"epoch": 1, "lear')
            kill()
        super()._append(keys, logs)


def kill_at_call(function: str, calls: int) -> None:
    """Makes the checkpoint store die when it calls its `function` once more."""
    original = getattr(checkpoint_module, function)
    left = [calls]

    def dying(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            kill()
        return original(*arguments)

    setattr(checkpoint_module, function, dying)


def after_random_time(seed: int) -> keras.callbacks.Callback:
    """Dies at a moment that nothing knows of."""
    delay = random.Random(seed).uniform(0.0, 0.4)

    class Alarm(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            # Tracing is over.
            if not signal.getitimer(signal.ITIMER_REAL)[0]:
                signal.signal(signal.SIGALRM, lambda *_: kill())
                signal.setitimer(signal.ITIMER_REAL, delay)

    return Alarm()


def fork(program: Callable[[], Any], result: pathlib.Path | None = None) -> int:
    """Runs a program in a process of its own; returns how it ended."""
    child = os.fork()
    if child == 0:
        try:
            outcome = program()
            if result is not None:
                outcome = {
                    k: outcome[k]
                    for k in ("arrays", "history", "epochs", "log", "first")
                }
                result.write_bytes(pickle.dumps(outcome))
        finally:
            os._exit(int(sys.exc_info()[0] is not None))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: pathlib.Path) -> None:
    def log_killer() -> dict[str, Any]:
        log = KillInLog(folder / "toy" / "metrics.jsonl", every_steps=2)
        log.__class__.__name__ = "MetricsLog"
        return train(folder / "toy", callbacks=[log, LearningRateHalving()])

    def in_checkpoint(function: str, calls: int) -> Callable[[], Any]:
        def program() -> Any:
            kill_at_call(function, calls)
            return language_model(folder / "lm", every_steps=1)

        return program

    deaths = [
        # Mid-epoch, in validation, in the middle of a line of the log.
        lambda: train(folder / "toy", extra=(InterruptAt(4, kill),), every_steps=1),
        lambda: train(folder / "toy", extra=(KillInValidation(),), every_steps=1),
        log_killer,
        # Before the arrays are hashed, before a flush, before the rename is flushed.
        in_checkpoint("_describe", 4),
        in_checkpoint("_flush", 12),
        in_checkpoint("_flush", 10),
        lambda: mirrored(
            folder / "mirrored", extra=(InterruptAt(9, kill),), every_steps=1
        ),
    ]
    for index, death in enumerate(deaths):
        status = fork(death)
        assert status == -signal.SIGKILL, (index, status)
    for moment in (1, 5):
        # In the first epoch, of four steps and Phase I; in the second, Phase II.
        died = functools.partial(bmi, folder / "bmi", every_steps=1)
        status = fork(functools.partial(died, extra=(InterruptAt(moment, kill),)))
        assert status == -signal.SIGKILL, (moment, status)
    for name, program, moment in (
        ("bmi_finetuning", bmi_finetuning, 5),
        ("electra", killed_encoders.electra, 9),
        ("electra_of_one", killed_encoders.electra_of_one, 9),
        ("fine_tuning", killed_encoders.fine_tuning, 9),
        ("teacher", killed_distillation.teacher, 5),
        ("student", killed_distillation.student, 5),
        ("language_teacher", killed_language.teacher, 9),
        ("language_student", killed_language.student, 9),
    ):
        # In the second epoch, with a best epoch and moments behind it.
        died = functools.partial(program, folder / name, every_steps=1)
        status = fork(functools.partial(died, extra=(InterruptAt(moment, kill),)))
        assert status == -signal.SIGKILL, (name, status)
    status = fork(
        lambda: language_model(
            folder / "lm", extra=(after_random_time(1),), every_seconds=0.05
        )
    )
    # It may be through before the alarm.
    assert status in (0, -signal.SIGKILL), status
    programs: dict[str, Callable[..., Any]] = {
        "toy": train,
        "lm": language_model,
        "bmi": bmi,
        "bmi_finetuning": bmi_finetuning,
        "electra": killed_encoders.electra,
        "electra_of_one": killed_encoders.electra_of_one,
        "fine_tuning": killed_encoders.fine_tuning,
        "teacher": killed_distillation.teacher,
        "student": killed_distillation.student,
        "language_teacher": killed_language.teacher,
        "language_student": killed_language.student,
        "mirrored": mirrored,
    }
    for name, program in programs.items():
        for run in (folder / name, folder / f"{name}-uninterrupted"):
            status = fork(
                functools.partial(program, run),
                folder / f"{run.name}.pickle",
            )
            assert status == 0, (run.name, status)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

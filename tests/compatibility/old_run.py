"""A folder of `experiments.imm_lm`: one run that is done, and one that was killed."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
from typing import Any
from unittest import mock

import tensorflow as tf

from experiments.kit.rows import Rows
from rlm_tf import serving
from rlm_tf.training import CheckpointStore
from tests.compatibility import commands
from tests.compatibility.arrays import FILES

# It holds the text, too: that of the embedded corpus differs between Pythons.
FOLDER = FILES / "old_run"
END = FILES / "old_run_end.json"
DONE, KILLED = "imm-in-batch-count2-seed1", "noising-unigram-seed1"
FLAGS = (
    "--preset=smoke --corpus=text.txt --fraction=1 --width=8 --batch_size=4 "
    "--window=10 --learning_rate=0.05 --min_count=2 --output_dir=run "
    "--checkpoint_seconds=0.001 --arms="
)
# The checkpoint after which it was killed: there is one a step, 14 steps an epoch.
_LAST = 24


def resume(folder: pathlib.Path) -> dict[str, Any]:
    """Gives the command of both runs in a folder; returns the row of the killed one."""
    with contextlib.chdir(folder), commands.loaded("imm_lm") as binary:
        binary.run(f"{FLAGS}imm-in-batch,noising-unigram")
    return numbers(Rows(folder / "run" / "results").read(KILLED))


def numbers(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row without what differs from run to run."""
    for name in ("commit", "finished", "machine", "other_cores", "seconds", "step_ms"):
        del row[name]
    return row


def exported_log_probs(folder: pathlib.Path) -> list[float]:
    """Exports the model of the run that is done, but for writing it.

    Returns:
        What the functions that would be written say of two texts.
    """
    model = folder / "run" / DONE / "model.keras"
    write = mock.Mock(side_effect=commands.Valid)
    with (
        mock.patch.object(serving, "export_language_model", write),
        contextlib.suppress(commands.Valid),
        commands.loaded("export") as binary,
    ):
        binary.run(f"--model={model} --output_dir={folder / 'exported'}")
    service = serving.LanguageModelService(*write.call_args.args[:2])
    texts = tf.constant(["the cat sat on the mat .", "a bird"])
    return service.score(texts)["total"].numpy().tolist()


def make() -> None:
    """Trains both runs, the second until it is killed."""
    shutil.rmtree(FOLDER / "run", ignore_errors=True)
    with contextlib.chdir(FOLDER), commands.loaded("imm_lm") as binary:
        binary.run(f"{FLAGS}imm-in-batch")
        save, saved = CheckpointStore.save, []

        def killed(self: CheckpointStore, *args: Any) -> pathlib.Path:
            path = save(self, *args)
            saved.append(path)
            if len(saved) == _LAST:
                raise KeyboardInterrupt
            return path

        with (
            mock.patch.object(CheckpointStore, "save", killed),
            contextlib.suppress(KeyboardInterrupt),
        ):
            binary.run(f"{FLAGS}noising-unigram")
    # What is drawn and what TensorBoard reads is written anew.
    for path in (FOLDER / "run").glob("*.*"):
        os.remove(path)
    for path in (FOLDER / "run").glob("*/tensorboard"):
        shutil.rmtree(path)

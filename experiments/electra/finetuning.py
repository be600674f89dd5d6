"""Fine-tunes the encoders of finished runs on labelled texts."""

from __future__ import annotations

import functools
import hashlib
import pathlib
import time
from typing import Any, NamedTuple

from experiments.electra.chosen_rows import NEEDS
from experiments.electra.config import GRID, ElectraConfig
from experiments.electra.naming import ElectraRun, name_of
from experiments.kit import machine
from experiments.kit.encoder_finetuning import DROPOUT, Recipe, finetune
from experiments.kit.encoder_tasks import peers, read_task
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from rlm_tf import load_model
from rlm_tf.command_line.json_files import write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.commands.encoders.examples import Examples
from rlm_tf.data import Vocabulary
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import Electra
from rlm_tf.models.encoders.other_dropout import with_dropout


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        encoder: Of the detector, or of the masked language model.
        vocabulary: Its vocabulary.
        examples: Of the task.
    """

    encoder: TransformerEncoder
    vocabulary: Vocabulary
    examples: Examples


def task_run(run: ElectraRun, task: str, output: pathlib.Path) -> Run:
    """Returns the run that fine-tunes what a run has pre-trained.

    Args:
        run: It is done.
        task: Of `task_list.TASKS`.
        output: The folder of both.
    """
    place = output / name_of(run)
    model = place / "model.keras"
    digest = hashlib.sha256(model.read_bytes()).hexdigest() if model.exists() else None
    settings = {**run.settings, "tasks": task, "encoder_sha256": digest}
    return Run(
        f"{task}-of-{name_of(run)}",
        settings,
        functools.partial(_prepare, run, task, place),
        functools.partial(_train, run, task, settings),
        (*NEEDS, "task", "test", "peers"),
    )


def _prepare(run: ElectraRun, task: str, place: pathlib.Path) -> Prepared:
    if not (place / "model.keras").exists():
        raise FileNotFoundError(
            f"{place / 'model.keras'} is not there: only encoders that the same "
            "command without --tasks has pre-trained, and that are still in "
            "--output_dir, are fine-tuned."
        )
    model = load_model(place / "model.keras", compile=False)
    encoder = model.encoder() if isinstance(model, Electra) else model.encoder
    with native_silence():
        vocabulary = Vocabulary.load(place / "vocabulary.json")
    encoder = with_dropout(encoder, DROPOUT)
    return Prepared(encoder, vocabulary, read_task(task, run.seed))


def _train(
    run: ElectraRun,
    task: str,
    settings: dict[str, Any],
    prepared: Prepared,
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Fine-tunes an encoder; returns its row."""
    config: ElectraConfig = run.config
    encoder, vocabulary, examples = prepared
    write_json(folder / "config.json", settings)
    found = finetune(
        encoder,
        vocabulary,
        task,
        examples,
        folder,
        recipe=Recipe(config.task_rate, config.batch_size, steps=config.task_steps),
        seed=run.seed,
    )
    return {
        "name": folder.name,
        "command": command_of(GRID, config, run.seed, **run.chosen, tasks=task),
        **{name: getattr(run, name) for name in ("arm", "generator", "rate", "seed")},
        "task": task,
        "examples": len(examples.train),
        **found,
        # The same for all arms of a seed.
        "peers": peers(task, examples),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }

"""Fine-tunes the encoders of finished runs on labelled texts."""

from __future__ import annotations

import functools
import pathlib
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.electra.chosen_rows import NEEDS
from experiments.electra.config import GRID, ElectraConfig, table_a2
from experiments.electra.naming import ElectraRun, name_of
from experiments.kit import machine
from experiments.kit.encoder_finetuning import DROPOUT, Recipe, finetune
from experiments.kit.encoder_tasks import peers, read_task
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.weights_digest import weights_digest
from rlm_tf import load_model
from rlm_tf.command_line.json_files import read_json, write_json
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
    digest = weights_digest(place / "model.keras")
    settings = {**run.settings, "tasks": task, "encoder_sha256": digest}
    searched = "table-a2-" if run.config.table_a2 else ""
    return Run(
        f"{searched}{task}-of-{name_of(run)}",
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

    def tuned(recipe: Recipe, place: pathlib.Path) -> dict[str, Any]:
        fresh = with_dropout(encoder, DROPOUT)
        return finetune(
            fresh, vocabulary, task, examples, place, recipe=recipe, seed=run.seed
        )

    if config.table_a2:
        recipes = _drawn(config, run.seed)
        found = best_of(recipes, tuned, folder)
    else:
        plain = Recipe(config.task_rate, config.batch_size, steps=config.task_steps)
        found = tuned(plain, folder)
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


# === Table A.2 ===


def _drawn(config: ElectraConfig, seed: int) -> list[Recipe]:
    """Returns so many settings of Table A.2, in a drawn order."""
    known = table_a2(config.layers)
    order = np.random.default_rng(seed).permutation(len(known))
    return [Recipe(**known[place]) for place in order[: config.table_a2]]


def best_of(
    recipes: Sequence[Recipe],
    tuned: Callable[[Recipe, pathlib.Path], dict[str, Any]],
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Fine-tunes by each recipe, and returns what the best one scores.

    Args:
        recipes: What is tried.
        tuned: Maps a recipe and the folder of its run to scores; "valid_score"
            counts.
        folder: Of all. Those that a killed run has been through are not tried again.
    """
    tried: list[dict[str, Any]] = []
    for number, recipe in enumerate(recipes):
        place = folder / f"setting-{number}"
        done = place / "scores.json"
        if not done.exists():
            place.mkdir(parents=True, exist_ok=True)
            write_json(done, {**tuned(recipe, place), "setting": recipe._asdict()})
        tried.append(read_json(done, "remove it", ("valid_score", "setting")))
        # What is resumed from is of no use any more.
        shutil.rmtree(place / "checkpoints", ignore_errors=True)
    best = max(tried, key=lambda each: each["valid_score"])
    return {
        **best,
        "seconds": sum(each["seconds"] for each in tried),
        "tried": [[each["valid_score"], each["setting"]] for each in tried],
    }

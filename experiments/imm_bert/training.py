"""Fine-tunes one encoder on one task."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any, NamedTuple

import numpy as np

from experiments.imm_bert.building import build
from experiments.imm_bert.config import ARMS, GRID, FinetuneConfig
from experiments.imm_bert.projecting import project
from experiments.imm_bert.report import NEEDS
from experiments.kit import machine
from experiments.kit.encoder_config import EncoderConfig
from experiments.kit.encoder_finetuning import DROPOUT, Recipe, Wrapped, finetune
from experiments.kit.encoder_tasks import peers, read_task
from experiments.kit.encoder_text import read_encoder_text
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.task_list import TASKS
from experiments.kit.weights_digest import weights_digest
from rlm_tf import load_model
from rlm_tf.command_line.json_files import write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.commands.encoders.examples import Examples
from rlm_tf.data import LabelledBatches, MaskedCopy, Vocabulary
from rlm_tf.models import MaskedLanguageModel, SequenceClassifier
from rlm_tf.models.encoders.other_dropout import masked_with_dropout
from rlm_tf.models.encoders.published_bert import read_bert, weights_of


class TaskRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to.
        arm: Of `ARMS`.
        task: Of `task_list.TASKS`.
        seed: Of the encoder, and of which examples are drawn.
        restart: From 0 on, of the head and the order.
    """

    config: FinetuneConfig
    arm: str
    task: str
    seed: int
    restart: int

    @property
    def chosen(self) -> dict[str, Any]:
        """What the run has of settings that are lists."""
        return {"arms": self.arm, "tasks": self.task}

    @property
    def encoder(self) -> pathlib.Path:
        """The folder of the encoder."""
        if self.config.checkpoint:
            return pathlib.Path(self.config.checkpoint)
        folder = pathlib.Path(self.config.encoders_dir)
        return folder / self.config.encoder.format(seed=self.seed)

    @property
    def checkpoint(self) -> str:
        """The name of the published encoder's folder; of ours "".

        Where encoders are says nothing of them.
        """
        return self.encoder.absolute().name if self.config.checkpoint else ""

    @property
    def name(self) -> str:
        """Of its row and its folder."""
        own = f"{self.task}-{self.arm}-seed{self.seed}-restart{self.restart}"
        return f"{self.checkpoint}-{own}" if self.checkpoint else own

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run."""
        file = self.encoder / "model.keras"
        if self.checkpoint:
            file = weights_of(self.encoder)
        return {
            **dataclasses.asdict(self.config),
            **self.chosen,
            "seed": self.seed,
            "restarts": self.restart,
            "encoders_dir": None,
            "checkpoint": self.checkpoint,
            "encoder_sha256": weights_digest(file),
        }


def runs_of(config: FinetuneConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid, or those that are timed in its place."""
    config = config.with_checkpoint()
    if config.project_steps:
        return [_projected(config, arm, seeds[0]) for arm in config.arms]
    runs = [
        TaskRun(config, arm, task, seed, restart)
        for seed in seeds
        for task in config.tasks
        for restart in range(config.restarts)
        for arm in config.arms
    ]
    return [
        Run(
            run.name,
            run.settings,
            functools.partial(prepare, run),
            functools.partial(train, run),
            NEEDS,
        )
        for run in runs
    ]


def _projected(config: FinetuneConfig, arm: str, seed: int) -> Run:
    """Returns the run that times some steps of an arm."""
    settings = {**dataclasses.asdict(config), "arms": arm, "seed": seed}

    def timed(_: Any, folder: pathlib.Path) -> dict[str, Any]:
        return {
            "name": folder.name,
            "command": command_of(GRID, config, seed, arms=arm),
            "arm": arm,
            **project(arm, config, seed),
            "machine": machine.environment()["machine"],
            "commit": machine.commit(),
            "finished": time.strftime("%Y-%m-%d"),
        }

    needs = ("name", "arm", "hours")
    return Run(f"project-{arm}", settings, lambda: None, timed, needs)


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        masked_model: The masked language model.
        vocabulary: Its vocabulary.
        examples: Of the task.
    """

    masked_model: MaskedLanguageModel
    vocabulary: Vocabulary
    examples: Examples


def prepare(run: TaskRun) -> Prepared:
    """Reads an encoder and examples.

    Raises:
        FileNotFoundError: If there is no encoder.
        ValueError: If it is a published one without a head of masked words, for an arm
            that has them.
    """
    if run.checkpoint:
        with native_silence():
            bert = read_bert(run.encoder, dropout=DROPOUT)
        if ARMS[run.arm] and not bert.has_head:
            raise ValueError(
                f"--checkpoint={run.encoder} has no head of masked words "
                f"(cls.predictions), which the arm {run.arm} needs."
            )
        examples = read_task(run.task, run.seed)
        return Prepared(bert.model, bert.vocabulary, examples)
    if not (run.encoder / "model.keras").exists():
        raise FileNotFoundError(
            f"{run.encoder / 'model.keras'} is not there (--encoders_dir): `python -m "
            "experiments.electra --preset=generators` trains it."
        )
    with native_silence():
        vocabulary = Vocabulary.load(run.encoder / "vocabulary.json")
    model = load_model(run.encoder / "model.keras", compile=False)
    return Prepared(
        masked_with_dropout(model, DROPOUT),
        vocabulary,
        read_task(run.task, run.seed),
    )


def train(run: TaskRun, prepared: Prepared, folder: pathlib.Path) -> dict[str, Any]:
    """Fine-tunes a model; returns its row."""
    config, (masked_model, vocabulary, examples) = run.config, prepared
    write_json(folder / "config.json", run.settings)
    found = finetune(
        masked_model.encoder,
        vocabulary,
        run.task,
        examples,
        folder,
        recipe=Recipe(config.rate, config.batch_size, steps=config.steps),
        seed=1000 * run.restart + run.seed,
        wrap=functools.partial(_wrapped, run, prepared) if ARMS[run.arm] else None,
    )
    return {
        "name": folder.name,
        "command": command_of(GRID, config, run.seed, **run.chosen),
        **{name: getattr(run, name) for name in ("arm", "task", "seed", "restart")},
        "examples": len(examples.train),
        **({"checkpoint": run.checkpoint} if run.checkpoint else {}),
        **found,
        # The same for all arms.
        "peers": peers(run.task, examples),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _wrapped(
    run: TaskRun, prepared: Prepared, classifier: SequenceClassifier
) -> Wrapped:
    """Returns the classifier with masked words, and IMM where the arm has it."""
    config, (masked_model, vocabulary, examples) = run.config, prepared

    def text() -> np.ndarray:
        return _pre_training_text(config, vocabulary)

    def rows() -> tuple[np.ndarray, np.ndarray]:
        length = TASKS[run.task].length
        with native_silence():
            found = LabelledBatches(examples.train, vocabulary, length, 1)
        return found.tokens, found.segments

    model = build(
        run.arm,
        config,
        classifier,
        masked_model,
        text=text,
        rows=rows,
        seed=run.seed,
    )
    return Wrapped(model, MaskedCopy(vocabulary, seed=run.seed))


def _pre_training_text(config: FinetuneConfig, vocabulary: Vocabulary) -> np.ndarray:
    """Returns the pieces that the encoder was trained on, int `[N]`.

    One behind another as in the text: rows end where they are full, which is no end of
    anything.
    """
    names = ("corpus", "fraction", "pieces")
    text = read_encoder_text(
        EncoderConfig(**{n: getattr(config, n) for n in names}),
        vocabulary if config.checkpoint else None,
    )
    if text.vocabulary.tokens != vocabulary.tokens:
        raise ValueError(
            f"--corpus={config.corpus} and --pieces={config.pieces} make another "
            "vocabulary than the encoder's."
        )
    pieces: np.ndarray = text.train.tokens.ravel()
    return pieces[~np.isin(pieces, text.train.ids)]

"""`rlm_tf classifier`: pre-training and fine-tuning, one after the other."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import Any

from rlm_tf.command_line import run_lock
from rlm_tf.commands.encoders import examples as labelled
from rlm_tf.commands.encoders import finetuning, pretraining
from rlm_tf.commands.encoders.settings import (
    ENCODER,
    ClassifierSettings,
    FinetuneSettings,
    PretrainSettings,
)

# Of the minutes, what pre-training takes; fine-tuning takes most of the rest.
_PRETRAIN, _FINETUNE = 0.7, 0.2
_HELD_OUT = 0.1


def run(settings: ClassifierSettings) -> None:
    """Trains an encoder in a folder within, then the classifier."""
    folder = pathlib.Path(str(settings.output_dir))
    began = time.monotonic()
    with run_lock.held(folder.absolute()):
        # A mistake in the tables is told before an hour of pre-training.
        examples = labelled.read_examples(settings)
        finetune = _finetune_settings(settings, folder)
        _pretrain(settings, folder, examples)
        if settings.epochs is None:
            spent = (time.monotonic() - began) / 60
            left = max(settings.minutes - spent, _FINETUNE * settings.minutes)
            finetune = dataclasses.replace(finetune, minutes=left * 2 / 3)
        finetuning.Run(finetune, folder, examples).run()


def _pretrain(
    settings: ClassifierSettings, folder: pathlib.Path, examples: labelled.Examples
) -> None:
    texts = None
    if settings.text is None:
        # Held-out and test examples stay unseen.
        lines = [
            " ".join(text.split())
            for part in (examples.train.texts, examples.train.texts_b or [])
            for text in part
        ]
        number = max(1, round(_HELD_OUT * len(lines)))
        texts = (_joined(lines[:-number]), _joined(lines[-number:]))
    pretrain = PretrainSettings(
        **_common(settings, PretrainSettings),
        output_dir=str(folder / ENCODER),
        text=settings.text,
        minutes=_PRETRAIN * settings.minutes,
    )
    encoder = folder / ENCODER
    with run_lock.held(encoder.absolute()):
        pretraining.Run(pretrain, encoder, texts).run()


def _finetune_settings(
    settings: ClassifierSettings, folder: pathlib.Path
) -> FinetuneSettings:
    return FinetuneSettings(
        **_common(settings, FinetuneSettings),
        length=settings.length,
        encoder=str(folder / ENCODER),
        output_dir=str(folder),
        minutes=None,
    )


def _common(settings: ClassifierSettings, kind: type) -> dict[str, Any]:
    """Returns the settings that both have, but those that differ in meaning."""
    own = {field.name for field in dataclasses.fields(kind)}
    apart = {"output_dir", "minutes", "text", "length"}
    given = dataclasses.asdict(settings)
    # Without a text the tables are what is read.
    return {name: given[name] for name in given if name in own - apart}


def _joined(lines: list[str]) -> bytes:
    return "\n".join([*lines, ""]).encode()

"""`rlm_tf classifier`: pre-training and fine-tuning, one after the other."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import Any

from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json
from rlm_tf.commands.encoders import examples as labelled
from rlm_tf.commands.encoders import finetuning, pretraining
from rlm_tf.commands.encoders.settings import (
    ENCODER,
    SETTINGS,
    ClassifierSettings,
    FinetuneSettings,
    PretrainSettings,
)

# Of the minutes, what pre-training takes; fine-tuning takes most of the rest.
_PRETRAIN, _FINETUNE = 0.7, 0.2
_HELD_OUT = 0.1
# Tokens of a row of the tables' own texts, and rows that there should be.
_LENGTHS, _LEAST_ROWS = (128, 64, 32, 16), 4


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
            granted = _granted_before(settings, folder) or left * 2 / 3
            finetune = dataclasses.replace(finetune, minutes=granted)
        finetuning.Run(finetune, folder, examples).run()


def _granted_before(settings: ClassifierSettings, folder: pathlib.Path) -> float | None:
    """Returns the minutes that an earlier process gave to fine-tuning, if one did.

    Of a killed run they stay what they were: how much is spent is in its checkpoints.
    """
    path = folder / SETTINGS
    if settings.overwrite or not path.exists():
        return None
    found = read_json(path, "give --overwrite").get("minutes")
    return float(found) if isinstance(found, int | float) else None


def _pretrain(
    settings: ClassifierSettings, folder: pathlib.Path, examples: labelled.Examples
) -> None:
    texts = None
    sizes: dict[str, Any] = {}
    if settings.text is None:
        # Held-out and test examples stay unseen.
        lines = [
            " ".join(text.split())
            for part in (examples.train.texts, examples.train.texts_b or [])
            for text in part
        ]
        number = max(1, round(_HELD_OUT * len(lines)))
        texts = (_joined(lines[:-number]), _joined(lines[-number:]))
        sizes["length"] = _row_length(str(settings.train), *texts)
    pretrain = PretrainSettings(
        # The held-out table is none of text.
        **{**_common(settings, PretrainSettings), "valid": None, **sizes},
        # Second texts have a segment of their own, which must be learnt.
        two_texts=settings.text_b_column is not None,
        output_dir=str(folder / ENCODER),
        text=settings.text,
        minutes=_PRETRAIN * settings.minutes,
    )
    encoder = folder / ENCODER
    with run_lock.held(encoder.absolute()):
        pretraining.Run(pretrain, encoder, texts).run()


def _row_length(name: str, train: bytes, valid: bytes) -> int:
    """Returns how long rows of the texts of a table may be.

    Raises:
        ValueError: If there is too little text for any.
    """
    # A word has a piece at least.
    words, held = (len(text.split()) for text in (train, valid))
    for length in _LENGTHS:
        if words >= _LEAST_ROWS * length and held >= length:
            return length
    raise ValueError(
        f"--train={name}: its {words + held:,} words are too few to pre-train on, at "
        f"least {_LEAST_ROWS * _LENGTHS[-1]} to learn from and {_LENGTHS[-1]} in the "
        "last tenth of the texts are needed; give --text, a file of similar text."
    )


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

"""The folder of a trained model: what `rlm_tf train` writes and others read."""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

import keras

from rlm_tf.command_line.json_files import read_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.commands.settings import RESULTS, check_folder
from rlm_tf.data import Vocabulary
from rlm_tf.loading import load_model
from rlm_tf.restricted import KneserNey

PLAN = "plan.json"
MODEL = "model.keras"
VOCABULARY = "vocabulary.txt"
N_GRAM = "n_gram.kn"
SAVED_MODEL = "saved_model"
_REMEDY = "let `rlm_tf train --overwrite` write it anew"


class Trained(NamedTuple):
    """What a folder holds.

    Attributes:
        folder: The folder.
        model: The language model.
        vocabulary: Its vocabulary.
        n_gram: The n-gram model of the text that was counted, with a floor.
        mu: Weight of the n-gram in the mixture; None: it is not mixed in.
        temperature: Of the model.
        results: What was measured.
    """

    folder: pathlib.Path
    model: keras.Model
    vocabulary: Vocabulary
    n_gram: KneserNey
    mu: float | None
    temperature: float
    results: dict[str, Any]

    @property
    def mixture(self) -> tuple[KneserNey, float] | None:
        """The n-gram and its weight, as exports take them."""
        return None if self.mu is None else (self.n_gram, self.mu)


def load_folder(path: str | None, command: str) -> Trained:
    """Returns what a folder holds.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If there is no trained model, or a file is damaged.
    """
    folder = check_folder(path, command)
    results = read_json(folder / RESULTS, _REMEDY, ("mixture.mu", "temperature"))
    # TensorFlow Text says how it read the pieces.
    with native_silence():
        vocabulary = Vocabulary.load(folder / VOCABULARY)
    return Trained(
        folder,
        load_model(folder / MODEL, compile=False),
        vocabulary,
        KneserNey.load(folder / N_GRAM),
        results["mixture"]["mu"],
        results["temperature"],
        results,
    )

"""A text and settings of `rlm_tf train` that take seconds."""

from __future__ import annotations

import pathlib

from rlm_tf.commands.settings import TrainSettings
from rlm_tf.data.text.python_docs import python_docs


def small_settings(folder: pathlib.Path) -> TrainSettings:
    """Writes a text into a folder; returns what trains on it, into `out` within."""
    text = folder / "docs.txt"
    text.write_text(python_docs()["train"][:40_000])
    return TrainSettings(
        text=str(text),
        output_dir=str(folder / "out"),
        epochs=2,
        max_size=300,
        width=16,
        num_layers=1,
        dropouts=(0.1, 0.0, 0.0, 0.1),
    )

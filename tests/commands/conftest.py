"""A run of `rlm_tf train` that takes seconds, one a module; encoders have their own."""

from __future__ import annotations

import pathlib

import pytest

from rlm_tf.commands.settings import TrainSettings
from rlm_tf.commands.training import running
from rlm_tf.data.text.python_docs import python_docs


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> TrainSettings:
    """Settings that train on a text, into a folder beside it."""
    folder = tmp_path_factory.mktemp("docs")
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


@pytest.fixture(scope="module")
def trained(small) -> pathlib.Path:
    """The folder of that run."""
    running.run(small)
    return pathlib.Path(str(small.output_dir))

"""A run goes on from a checkpoint of an earlier version, to the end it had to reach."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.compatibility import arrays, stopped_run

# Without graphs, data sets trace their functions all the same, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the:UserWarning")


@pytest.fixture(scope="module")
def ends(tmp_path_factory) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What the resumed run ends with, and what it has to end with."""
    folder = tmp_path_factory.mktemp("run") / "stopped_run"
    shutil.copytree(stopped_run.FOLDER, folder)
    tf.config.run_functions_eagerly(True)
    try:
        return stopped_run.run(folder), arrays.read("stopped_run")
    finally:
        tf.config.run_functions_eagerly(False)


def test_it_went_on_from_the_checkpoint(ends):
    found, known = ends
    assert found["steps"] == known["steps"]
    # A run from the start has six steps in each of two epochs.
    assert 0 < known["steps"] < 6


@pytest.mark.parametrize(
    "name",
    [
        "history",
        "log",
        "weights",
        "carried",
        "bank",
        "learning_rate",
        "started",
        *(f"averages/{name}" for name in [*stopped_run.averages(), "two_tailed"]),
        "lengths",
    ],
)
def test_it_reaches_the_same_end(ends, name):
    found, known = (
        {k: v for k, v in end.items() if f"{k}/".startswith(f"{name}/")} for end in ends
    )
    assert known
    arrays.assert_close(found, known, 1e-4)

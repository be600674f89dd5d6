"""Fixtures shared by all tests."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pathlib
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Compiling takes longer than the few steps of most tests; tests of compiled loops ask
# for them. Binaries that tests start inherit it.
os.environ.setdefault("RLM_JIT_LOOP", "0")

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.distribution import strategy
from rlm_tf.training import free_graphs_on_exit
from tests import budgets

# Two logical devices on every machine, so that MirroredStrategy has two replicas. This
# must precede the first operation.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)

# Rewriting graphs takes longer, too, than they then run. Binaries do it as ever.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts folders with long tests first: none comes last, with the others idle."""
    long = ("experiments", "training")
    items.sort(key=lambda item: item.path.parent.name not in long)


def pytest_collection_finish() -> None:
    """Keeps what was imported out of garbage collection: half a million objects.

    Tracing makes so many objects, most of them to stay, that collecting by the usual
    thresholds takes a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of `make budgets`."""
    parser.addoption(
        "--write_budgets",
        action="store_true",
        help="write tests/budgets.json from what the files take now",
    )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says which files took longer than their budget of seconds."""
    taken = budgets.seconds_by_file(terminalreporter.stats.values())
    if config.getoption("write_budgets"):
        budgets.write(taken)
    for line in budgets.exceeded(taken):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def two_replicas() -> tf.distribute.Strategy:
    """A MirroredStrategy over two logical CPUs.

    One for the whole session: collectives of two strategies over the same devices share
    keys inside TensorFlow and fail with a shape mismatch.
    """
    return strategy("mirrored", ["CPU:0", "CPU:1"])


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
    """The folder with the real data sets; skips the test where it is absent."""
    value = os.environ.get("RLM_DATA_DIR")
    if not value:
        pytest.skip(
            "needs real data: set RLM_DATA_DIR to the folder with the data sets"
        )
    path = pathlib.Path(value)
    if not path.is_dir():
        pytest.skip(f"needs real data: RLM_DATA_DIR={path} is not a folder")
    return path


@pytest.fixture(scope="module", autouse=True)
def forget_graphs() -> Iterator[None]:
    """Lets go of a module's graphs, which otherwise fill the memory."""
    with free_graphs_on_exit():
        yield
    # glibc keeps what is freed, and several modules' worth of it adds up.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


@pytest.fixture(autouse=True)
def eager_where_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs tests of marked modules without graphs, but for their own marked ones."""
    marker = request.node.get_closest_marker
    eager = marker("eager") is not None and marker("graph") is None
    if eager:
        tf.config.run_functions_eagerly(True)
    yield
    if eager:
        tf.config.run_functions_eagerly(False)


@pytest.fixture
def rng() -> np.random.Generator:
    """A NumPy generator with a fixed seed."""
    return np.random.default_rng(20240213)

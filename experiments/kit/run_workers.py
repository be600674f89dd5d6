"""Several processes that make the runs of one binary: one leads, the others follow.

The chief decides, writes, reports and exports as a single process does. Before each
run it tells the others which; they train along, write their share of checkpoints, and
nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from absl import flags

from rlm_tf import distribution
from rlm_tf.command_line import run_lock
from rlm_tf.training import TrainingDivergedError, released_graphs
from rlm_tf.workers import Workers

SEVERAL = "multi_worker_mirrored"
# What is told goes in pieces of one size, which all know.
_PIECE = 256


class Followed(Exception):  # noqa: N818 (not an error)
    """Ends what a worker that is not the chief does for a run: training is over."""


@functools.cache
def workers() -> Workers:
    """Returns all processes, the first time waiting until they are there."""
    several = "strategy" in flags.FLAGS and flags.FLAGS.strategy == SEVERAL
    found = Workers(distribution.strategy(SEVERAL if several else "default"))
    if found.are_several:
        print(f"worker {found.index} of {found.number}", flush=True)
    return found


def held(folder: pathlib.Path) -> contextlib.AbstractContextManager[None]:
    """Returns the lock of a folder that the chief writes into, see `run_lock.held`."""
    return run_lock.held(folder) if workers().is_chief else contextlib.nullcontext()


def tell(content: Any) -> None:
    """Tells the others what comes next, as JSON; None: nothing does."""
    if not workers().are_several:
        return
    told = json.dumps(content).encode()
    workers().chiefs(len(told))
    for start in range(0, len(told), _PIECE):
        piece = told[start : start + _PIECE].ljust(_PIECE)
        workers().total([float(byte) for byte in piece])


def follow(run: Callable[[Any], Any]) -> None:
    """Does what the chief tells, and ends the program when it says so.

    On the chief, and where there are no others, this does nothing.

    Args:
        run: Gets what was told.
    """
    if workers().is_chief:
        return
    while (content := _told()) is not None:
        with contextlib.suppress(Followed, TrainingDivergedError), released_graphs():
            run(content)
    print("the chief has what it needs", flush=True)
    sys.exit(0)


def led(
    run: Callable[[dict[str, Any], pathlib.Path], Any],
) -> Callable[[dict[str, Any], pathlib.Path], Any]:
    """Returns a trial, a function of values and a folder, that all workers make."""

    def together(values: dict[str, Any], folder: pathlib.Path) -> Any:
        tell([values, str(folder)])
        return run(values, folder)

    follow(lambda told: run(told[0], pathlib.Path(told[1])))
    return together


def end_unless_chief() -> None:
    """Raises Followed on workers that have trained along, but are not the chief."""
    if not workers().is_chief:
        raise Followed


def _told() -> Any:
    left = workers().chiefs(0)
    told = b""
    while len(told) < left:
        told += bytes(int(byte) for byte in workers().total([0.0] * _PIECE))
    return json.loads(told)

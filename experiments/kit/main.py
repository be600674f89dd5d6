"""How every `python -m experiments.NAME` starts."""

from __future__ import annotations

import dataclasses

from absl import flags

from rlm_tf.command_line.program import Program, start

__all__ = ["Binary", "start"]

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class Binary(Program):
    """What `python -m experiments.NAME` is; `name` is NAME."""

    @property
    def command(self) -> str:
        """What a person types."""
        return f"python -m experiments.{self.name}"

    def prepare(self) -> None:
        """Meets the other workers, if there are any."""
        if "strategy" in FLAGS and FLAGS.strategy == "multi_worker_mirrored":
            # First of all: TensorFlow wants to know before any of its operations.
            from experiments.kit import run_workers

            run_workers.workers()

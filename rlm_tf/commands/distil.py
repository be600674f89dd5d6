"""Trains a smaller model on what larger ones say, and shows its price.

    rlm_tf distil --teacher=DIR --student=0.5 --export=saved_models/small/1
    rlm_tf distil --teacher=a.keras,b.keras --student=s.keras --arrays=xy.npz \
        --export=saved_models/small/1

Language models: DIR is a folder of `rlm_tf train`, several are averaged, 0.5 makes a
student of half the widths; the text is that of the training, or --corpus. Classifiers:
.keras files whose outputs are logits, and arrays x_train, y_train, x_valid, y_valid,
x_test, y_test (or x, y, which are cut 8:1:1). Ends with a table: teacher, the same
student alone, student.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.distillation.distilling import distil
from rlm_tf.commands.distillation.settings import DistilSettings, check_distil_settings

__all__ = ["PROGRAM", "distil", "main"]


def main() -> None:
    """Distils, exports and prints the table."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.distillation import running

    running.run(config_from_flags(DistilSettings()))


PROGRAM = Program(
    "rlm_tf distil",
    __doc__,
    main,
    settings=DistilSettings(),
    check=check_distil_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

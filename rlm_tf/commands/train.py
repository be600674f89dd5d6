"""Trains the best language model that a text and some minutes allow.

    rlm_tf train --text=FILE --output_dir=DIR
    rlm_tf train --text=FILE --valid=FILE --test=FILE --output_dir=DIR --minutes=10
    rlm_tf train --text=FILE --count_text=FILE --output_dir=DIR

Looks at the text, counts n-grams, chooses vocabulary, width and dropout and says why,
trains, and ends with DIR/report.html and DIR/saved_model. Killed or interrupted, the
same command goes on. DIR is the --model of `rlm_tf evaluate`, `score`, `generate` and
`export`.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.settings import TrainSettings, check_train_settings


def main() -> None:
    """Trains, and writes the report."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.training import running

    running.run(config_from_flags(TrainSettings()))


PROGRAM = Program(
    "rlm_tf train", __doc__, main, settings=TrainSettings(), check=check_train_settings
)

if __name__ == "__main__":
    start(PROGRAM)

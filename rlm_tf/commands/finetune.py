"""Fine-tunes an encoder on labelled texts.

    rlm_tf finetune --encoder=DIR --train=train.csv --output_dir=DIR
    rlm_tf finetune --encoder=DIR --train=train.csv --test=test.csv --output_dir=DIR

--train is a table whose first line names its columns. Keeps the epoch that is best on
held-out examples, and ends with DIR/report.html and DIR/saved_model, beside what a
linear model of tf-idf and the most frequent class reach on the same test texts. Killed
or interrupted, the same command goes on. DIR is the --model of `rlm_tf classify`.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.encoders.settings import FinetuneSettings, check_finetune_settings


def main() -> None:
    """Fine-tunes, and writes the report."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.encoders import finetuning

    finetuning.run(config_from_flags(FinetuneSettings()))


PROGRAM = Program(
    "rlm_tf finetune",
    __doc__,
    main,
    settings=FinetuneSettings(),
    check=check_finetune_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

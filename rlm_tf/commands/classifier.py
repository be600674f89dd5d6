"""Trains a classifier of texts from plain text and a few labelled examples.

    rlm_tf classifier --text=FILE --train=train.csv --output_dir=DIR --minutes=60
    rlm_tf classifier --train=train.csv --test=test.csv --output_dir=DIR

Pre-trains an encoder on the text (`rlm_tf pretrain`, in DIR/encoder), fine-tunes it on
the examples (`rlm_tf finetune`), and ends with DIR/report.html and DIR/saved_model,
beside what a linear model of tf-idf and the most frequent class reach on the same test
texts. Killed or interrupted, the same command goes on. DIR is the --model of `rlm_tf
classify`.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.encoders.settings import (
    ClassifierSettings,
    check_classifier_settings,
)


def main() -> None:
    """Trains both, and writes the reports."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.encoders import classifying

    classifying.run(config_from_flags(ClassifierSettings()))


PROGRAM = Program(
    "rlm_tf classifier",
    __doc__,
    main,
    settings=ClassifierSettings(),
    check=check_classifier_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

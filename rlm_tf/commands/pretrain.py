"""Trains an encoder on a text, to be fine-tuned on few labelled examples.

    rlm_tf pretrain --text=FILE --output_dir=DIR --minutes=60
    rlm_tf pretrain --text=FILE --output_dir=DIR --objective=electra

Learns pieces of words, then predicts masked ones; with --objective=electra a generator
does that, and the encoder finds what it has replaced, each with an optimiser of its
own. Ends with DIR/report.html and DIR/saved_model, beside what n-grams reach. Killed or
interrupted, the same command goes on. DIR is the --encoder of `rlm_tf finetune` and the
--model of `rlm_tf fill_mask`.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.encoders.settings import PretrainSettings, check_pretrain_settings


def main() -> None:
    """Trains, and writes the report."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.encoders import pretraining

    pretraining.run(config_from_flags(PretrainSettings()))


PROGRAM = Program(
    "rlm_tf pretrain",
    __doc__,
    main,
    settings=PretrainSettings(),
    check=check_pretrain_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

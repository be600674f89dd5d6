"""Measures a trained model on another text: perplexity and bits per byte.

    rlm_tf evaluate --model=DIR --text=FILE

The n-gram, the model and the mixture that DIR serves are scored on all tokens of the
text, with the weights that were tuned in training.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.settings import EvaluateSettings, check_evaluate_settings


def main() -> None:
    """Prints the table."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands import using

    using.evaluate(config_from_flags(EvaluateSettings()))


PROGRAM = Program(
    "rlm_tf evaluate",
    __doc__,
    main,
    settings=EvaluateSettings(),
    check=check_evaluate_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

"""Says the most probable words for each [MASK] of a text.

    rlm_tf fill_mask --model=DIR --text="They went [MASK] yesterday."

Prints a line for each [MASK]: words and their probabilities.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.encoders.settings import (
    FillMaskSettings,
    check_fill_mask_settings,
)


def main() -> None:
    """Prints the words."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.encoders import using

    using.fill_mask(config_from_flags(FillMaskSettings()))


PROGRAM = Program(
    "rlm_tf fill_mask",
    __doc__,
    main,
    settings=FillMaskSettings(),
    check=check_fill_mask_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

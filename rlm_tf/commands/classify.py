"""Says the class of each line of standard input.

    rlm_tf classify --model=DIR < lines.txt

Prints a line for each: the class, a tab, its probability; a number where labels were
numbers.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.encoders.settings import (
    ClassifySettings,
    check_classify_settings,
)


def main() -> None:
    """Prints the classes."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.encoders import using

    using.classify(config_from_flags(ClassifySettings()))


PROGRAM = Program(
    "rlm_tf classify",
    __doc__,
    main,
    settings=ClassifySettings(),
    check=check_classify_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

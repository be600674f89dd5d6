"""Prints what a trained model says after a text.

rlm_tf generate --model=DIR --prompt="Once upon"
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.settings import GenerateSettings, check_generate_settings


def main() -> None:
    """Draws and prints."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands import using

    using.generate(config_from_flags(GenerateSettings()))


PROGRAM = Program(
    "rlm_tf generate",
    __doc__,
    main,
    settings=GenerateSettings(),
    check=check_generate_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

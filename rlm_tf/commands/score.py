"""Scores each line of standard input with what a trained model serves.

    rlm_tf score --model=DIR < lines

Prints a line for each: the log-probability of its tokens in nats, their number, bits
per byte, and the line, with tabs between. Every line is a text of its own, scored from
its beginning; its newline does not count.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.settings import ScoreSettings, check_score_settings


def main() -> None:
    """Reads, scores, prints."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands import using

    using.score(config_from_flags(ScoreSettings()))


PROGRAM = Program(
    "rlm_tf score", __doc__, main, settings=ScoreSettings(), check=check_score_settings
)

if __name__ == "__main__":
    start(PROGRAM)

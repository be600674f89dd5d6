"""Measures how coherent texts are over long ranges, and texts that models say.

    rlm_tf coherence --text=a.txt,b.txt --output_dir=DIR
    rlm_tf coherence --corpus=python-docs --folds=3 --output_dir=DIR
    rlm_tf coherence --text=a.txt --model=TRAINED --output_dir=DIR

Estimates the mutual information of two segments of 40 tokens with some tokens between
them, in nats: how much one tells of the other (Cao and Xu 2019). A critic learns on all
but two of --folds blocks of a text to tell segments that belong together from others,
and is tested on one that it has not seen. Models are sampled first. All texts are cut
to the shortest. Beside it stand bounds, and the same of the first text with words and
sentences shuffled. A critic needs text to learn from: below a hundred thousand words
expect little or nothing, from half a million on most of what it finds. Killed or
interrupted, the same command goes on. What other --gaps have found is kept, and not
computed again; the report has those that are asked for.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.information.settings import (
    CoherenceSettings,
    check_coherence_settings,
)


def main() -> None:
    """Estimates, and writes the report."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.information import running

    running.run(config_from_flags(CoherenceSettings()))


PROGRAM = Program(
    "rlm_tf coherence",
    __doc__,
    main,
    settings=CoherenceSettings(),
    check=check_coherence_settings,
)

if __name__ == "__main__":
    start(PROGRAM)

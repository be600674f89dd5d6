"""Prints the tables of mogrifier_lm/README.md and some more, draws the figures.

    python -m experiments.mogrifier_report \
        --results_dir=experiments/mogrifier_lm \
        --output_dir=experiments/mogrifier_lm/figures
"""

from __future__ import annotations

import pathlib

from absl import flags

from experiments.kit.main import Binary, start


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string(
        "results_dir", "experiments/mogrifier_lm", "Folder of the rows."
    )
    flags.DEFINE_string(
        "output_dir", "experiments/mogrifier_lm/figures", "Folder of the figures."
    )


def main() -> None:
    """Reports every study that has rows."""
    from experiments.mogrifier_lm.reporting import write_report

    given = flags.FLAGS
    write_report(pathlib.Path(given.results_dir), pathlib.Path(given.output_dir))


BINARY = Binary("mogrifier_report", __doc__, main, define=define)

if __name__ == "__main__":
    start(BINARY)

r"""Prints the tables of imm_lm/README.md from its rows and draws its figures.

    python -m experiments.imm_report --results_dir=experiments/imm_lm \
        --output_dir=experiments/imm_lm/figures
"""

from __future__ import annotations

import pathlib

from absl import flags

from experiments.kit.main import Binary, start


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("results_dir", "experiments/imm_lm", "Folder of the rows.")
    flags.DEFINE_string(
        "output_dir", "experiments/imm_lm/figures", "Folder of the figures."
    )


def main() -> None:
    """Reports every study that has rows."""
    from experiments.imm_lm.reporting import write_report

    given = flags.FLAGS
    write_report(pathlib.Path(given.results_dir), pathlib.Path(given.output_dir))


BINARY = Binary("imm_report", __doc__, main, define=define)

if __name__ == "__main__":
    start(BINARY)

"""Prints the tables of experiments/README.md on recurrent cells, draws the figures.

    python -m experiments.mogrifier_report \
        --results_dir=experiments/results/mogrifier_lm --output_dir=experiments/figures
"""

from __future__ import annotations

import pathlib

from absl import flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

from experiments.imm.row import read_studies  # noqa: E402
from experiments.mogrifier import evidence_report, report  # noqa: E402
from experiments.mogrifier.studies import STUDIES  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "results_dir", "experiments/results/mogrifier_lm", "Folder of the rows."
)
flags.DEFINE_string("output_dir", "experiments/figures", "Folder of the figures.")


def main(arguments: list[str]) -> None:
    """Reports every study that has rows."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
        _report(pathlib.Path(FLAGS.results_dir), pathlib.Path(FLAGS.output_dir))


def _report(results: pathlib.Path, figures: pathlib.Path) -> None:
    rows = read_studies(results, STUDIES, report.NEEDS)
    figures.mkdir(parents=True, exist_ok=True)
    for name, members in rows.items():
        if not members:
            continue
        parts = [f"## {name}", report.results_table(members)]
        parts.append(report.ways_table(members))
        explained = [row for row in members if row.get("evidence")]
        if explained:
            parts.append(evidence_report.frequency_table(explained))
            parts.append(evidence_report.recovery_table(explained))
            parts.append(evidence_report.gates_table(explained))
        print("\n\n".join(filter(None, parts)), end="\n\n")
        path = figures / f"mogrifier_lm_{name}.png"
        report.results_figure(members, path)
    if rows["cells"] and rows["variants"]:
        path = figures / "mogrifier_lm_rounds.png"
        report.rounds_figure([*rows["cells"], *rows["variants"]], path)


if __name__ == "__main__":
    config_flags.start(main)

"""Prints the tables of experiments/README.md from its rows and draws its figures.

    python -m experiments.imm_report --results_dir=experiments/results/imm_lm \
        --output_dir=experiments/figures
"""

from __future__ import annotations

import pathlib

from absl import flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

from experiments.imm import report, scarcity  # noqa: E402
from experiments.imm.row import read_studies  # noqa: E402
from experiments.imm.studies import STUDIES  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("results_dir", "experiments/results/imm_lm", "Folder of the rows.")
flags.DEFINE_string("output_dir", "experiments/figures", "Folder of the figures.")


def main(arguments: list[str]) -> None:
    """Reports every study that has rows."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
        _report(pathlib.Path(FLAGS.results_dir), pathlib.Path(FLAGS.output_dir))


def _report(results: pathlib.Path, figures: pathlib.Path) -> None:
    rows = read_studies(results, STUDIES, report.NEEDS)
    for name, members in rows.items():
        if not members:
            continue
        corpus = members[0]["corpus"]
        print(f"## {name}\n\n{report.perplexity_table(members)}\n")
        print(f"{report.provenance(members)}\n\n{report.rates_line(members)}\n")
        if name in ("main", "full", "sampler"):
            print(f"{report.induced_table(members)}\n")
            title = f"{corpus['name']}, {corpus['train_tokens']:,} training tokens"
            report.learning_curves(members, figures / f"imm_lm_{name}.png", title)
        if name in ("tuning", "ablation"):
            print(f"{report.settings_table(members)}\n")
        if name == "ablation":
            print(f"{report.counts_table(members)}\n")
    amounts = [*rows["main"], *rows["scarcity"], *rows["full"]]
    if scarcity.can_be_fitted(amounts):
        for text in ("valid", "test"):
            table = scarcity.scarcity_table(amounts, text)
            print(f"## scarcity law, {text}\n\n{table}\n")
        scarcity.scarcity_figure(amounts, figures / "imm_lm_scarcity.png")


if __name__ == "__main__":
    config_flags.start(main)

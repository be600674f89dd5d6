"""Trains language models with and without induced model matching, and compares them.

    python -m experiments.imm_lm --preset=small --output_dir=runs/demo
    python -m experiments.imm_lm --preset=paper --data_dir=DATA --output_dir=runs/paper
    python -m experiments.imm_lm --study=main --data_dir=DATA --output_dir=runs/imm_lm

Interpolation with the n-gram, (1 - mu) Q + mu P_hat, is an arm, and every row has it.

Every run (an arm and a seed) writes its own folder and one row of results; a run whose
row exists is skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

from absl import flags

from experiments.imm_lm.config import PRESETS
from experiments.imm_lm.studies import STUDIES
from experiments.kit import run_flags
from experiments.kit.main import Binary, start


def define() -> None:
    """Defines the flags that are no settings."""
    flags.DEFINE_list(
        "arms", ["none", "imm-in-batch"], "Comma-separated arms to compare."
    )
    flags.DEFINE_enum(
        "study", None, sorted(STUDIES), "A list of runs instead of --arms."
    )
    flags.DEFINE_boolean(
        "n_grams", False, "Only score Kneser-Ney alone, by order and amount of text."
    )
    flags.DEFINE_string("only", None, "Of a study, only runs whose name contains this.")
    run_flags.define_run_flags(
        "imm_lm",
        seeds="Comma-separated seeds, one run each; of studies, only `main`.",
    )


def main() -> None:
    """Runs what is not done yet, then writes table and figure."""
    from experiments.imm_lm import running

    running.main()


BINARY = Binary("imm_lm", __doc__, main, PRESETS, define=define, without=("seed",))

if __name__ == "__main__":
    start(BINARY)

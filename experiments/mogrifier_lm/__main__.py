"""Trains recurrent language models: LSTM, Mogrifier, RLSTM and others, regularised.

    python -m experiments.mogrifier_lm --preset=small --output_dir=runs/mogrifier
    python -m experiments.mogrifier_lm --preset=small --cell=rlstm --rounds=0
    python -m experiments.mogrifier_lm --preset=paper4-ptb-mogrifier --data_dir=DATA
    python -m experiments.mogrifier_lm --study=trials --data_dir=DATA

Presets `paper-...` are the tuned settings of Melis et al. (2020), `paper4-...` those of
chapter 4 of Melis (2023); `--project_steps=5` tells how many hours they would take.
Every run writes its own folder and one row of results; a run whose row exists is
skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

from absl import flags

from experiments.kit import run_flags
from experiments.kit.main import Binary, start
from experiments.mogrifier_lm.presets import PRESETS
from experiments.mogrifier_lm.studies import STUDIES


def define() -> None:
    """Defines the flags that are no settings."""
    flags.DEFINE_enum("study", None, sorted(STUDIES), "A list of runs.")
    flags.DEFINE_list(
        "only",
        [],
        "Of a study, only runs whose name is like one of these: lstm-*,*-seed2.",
    )
    flags.DEFINE_integer(
        "mc_samples",
        0,
        "Evaluate the model of each run dynamically and with so many dropout masks, "
        "too.",
        lower_bound=0,
    )
    flags.DEFINE_integer(
        "dynamic_mc_samples",
        4,
        "How many where every mask has weights of its own that follow the text.",
        lower_bound=1,
    )
    run_flags.define_run_flags("mogrifier_lm")


def main() -> None:
    """Runs what is not done yet, then writes table and figure."""
    from experiments.mogrifier_lm import running

    running.main()


BINARY = Binary(
    "mogrifier_lm", __doc__, main, PRESETS, define=define, without=("seed",)
)

if __name__ == "__main__":
    start(BINARY)

"""REINFORCE on a toroidal grid, helped by the solution of a POMDP: Figures 3 and 5.

    python -m experiments.imm_reinforce --preset=paper --output_dir=runs/imm_reinforce

Parts: `figure3` (returns against epochs, with and without IMM), `search` (returns
against lambda), `figure5` (the reward of every cell). Presets: smoke (under a
minute), small, paper (the published settings, about a minute on two cores).
"""

from __future__ import annotations

from experiments.imm_reinforce.config import PRESETS
from experiments.kit.parts import Study, run_study

STUDY = Study(
    "imm_reinforce",
    PRESETS,
    {
        "figure3": "study:figure_3",
        "search": "study:coefficient_search",
        "figure5": "study:landscape",
    },
    "report:report",
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

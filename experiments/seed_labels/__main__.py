"""What seed words label, how often they are wrong, and what deletion leaves of them.

    python -m experiments.seed_labels --preset=small --data_dir=DATA

Table 3.1 of Dong (2025) by the published rule and by ours, rates at which seeds are
deleted (Figures 3.2 and 3.3, top), documents after deletion (Table 3.4, written to the
output folder alone), and how often a seed that is left out is suggested anew.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.seed_labels.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

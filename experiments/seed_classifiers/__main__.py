"""Classifiers from seed words: how labels are selected, and what is deleted.

    python -m experiments.seed_classifiers --preset=small --seeds=1,2,3,4,5

Table 3.2 of Dong (2025) on small encoders, and our own arms beside; `--preset=peers`
has what others do with the same labels, `--preset=tune` (seeds 11 and 12) the choice of
epochs and rates.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.seed_classifiers.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

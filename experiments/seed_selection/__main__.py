"""Noise in what a probe is surest of, by how it was trained.

    python -m experiments.seed_selection --preset=small --seeds=1,2,3,4,5

Figures 3.1, 3.4, C.2 and C.3 of Dong (2025), and how far a probe follows a seed of
another class that is put into documents without one.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.seed_selection.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

"""Seed words label for a pre-trained transformer: vanilla, selection, deletion.

    python -m experiments.seed_transformer --preset=small --seeds=1,2,3,4,5 \
        --encoder=runs/electra/3000steps-masked-g4-rate0.002-seed1

`--preset=dropouts` has Figure 3.5 of Dong (2025): dropout instead of deletion.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.seed_transformer.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

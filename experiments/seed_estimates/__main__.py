"""How good labels and classifiers are, without true labels and with fifty.

    python -m experiments.seed_estimates --preset=small --seeds=1,2,3,4,5

Estimates without true labels beside the truth, the coverage and width of intervals from
fifty, and how many labels seeds are worth.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.seed_estimates.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

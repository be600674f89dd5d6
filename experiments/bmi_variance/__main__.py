"""Variance of the gradients of Phase II: policy gradient beside IW-RAML (Figure 3).

    python -m experiments.bmi_variance --preset=small --data_dir=DATA

Models of `experiments.bmi_lm`, trained with both phases, keep their weights; both
estimators' gradients are drawn on the same 200 batches.
"""

from __future__ import annotations

from experiments.bmi_variance.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

"""BMI on sentences with a hidden topic: does it help, and which part of it?

    python -m experiments.bmi_source --preset=small --seeds=1,2,3

Every kind of sentence, size of text, arm and seed is a run with a row of its own.
"""

from __future__ import annotations

from experiments.bmi_source.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

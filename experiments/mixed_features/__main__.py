"""Teachers and students on inputs whose label distribution is known.

    python -m experiments.mixed_features --preset=small

Each number of training examples is a run: all arms, on many instances at once. So are
the students of a teacher's checkpoints (Figure 2.1), the weights and schedules of its
terms (Figure 2.2), and the lemmas by enumeration.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.mixed_features.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

"""Teachers trained for students, and ways to learn from them, on 300 digits.

    python -m experiments.distill_digits --preset=small --seeds=1,2,3,4,5
    python -m experiments.distill_digits --preset=rivals --seeds=1,2,3
    python -m experiments.distill_digits --preset=methods --seeds=1,2,3

Every teacher and every student is a run with a row of its own. Students need the files
of their teachers, which the first preset trains, in the same --output_dir.
"""

from __future__ import annotations

from experiments.distill_digits.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

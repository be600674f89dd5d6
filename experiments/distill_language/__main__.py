"""Language models that learn from others, of a sixteenth of Penn Treebank.

    python -m experiments.distill_language --preset=plain --seeds=1,2,3,4,5,6,7,8
    python -m experiments.distill_language --preset=teachers --seeds=2,3,4
    python -m experiments.distill_language --preset=small --seeds=1,2,3

The first two train the models that teach; the last needs their files, in the same
--output_dir: student s learns from plain models s + 1 to s + 5.
"""

from __future__ import annotations

from experiments.distill_language.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

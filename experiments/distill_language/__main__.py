"""Language models that learn from others, of a sixteenth of Penn Treebank.

    python -m experiments.distill_language --preset=small --seeds=1,2,3

Students bring their teachers along: student s learns from plain models s + 1 to s + 5,
whose files must stay in the --output_dir.
"""

from __future__ import annotations

from experiments.distill_language.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

"""ELECTRA with one optimiser or two, and generators of several sizes.

    python -m experiments.electra --preset=generators --data_dir=DATA
    python -m experiments.electra --preset=rates --seeds=9 --data_dir=DATA
    python -m experiments.electra --preset=small --seeds=1,2,3 --data_dir=DATA

The first trains masked language models alone. What they make of held-out text is what
all detectors are scored on, so it comes before the others, with the same --output_dir.
A run that was killed goes on where it stood.
"""

from __future__ import annotations

from experiments.electra.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

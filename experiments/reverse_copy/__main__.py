"""The reverse copy task: LSTM and Mogrifier encoder-decoders on longer sequences.

    python -m experiments.reverse_copy --preset=small --output_dir=runs/reverse_copy

Every cell, length, learning rate and seed is a run with a row of its own; a run whose
row exists is skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.reverse_copy.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

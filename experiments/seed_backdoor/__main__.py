"""A trigger planted in training documents, and deletion against it.

    python -m experiments.seed_backdoor --preset=small --seeds=1,2,3

A rare word is put into a share of the training documents of other classes, which are
relabelled as the target. Clean accuracy, how often the word brings a document to the
target, and how well confidence tells the poisoned ones.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.seed_backdoor.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

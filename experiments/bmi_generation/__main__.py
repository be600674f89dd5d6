"""How coherent and how varied is what the models of `experiments.bmi_lm` say?

    python -m experiments.bmi_generation --preset=small --data_dir=DATA

Each model of `--models_dir`, which `experiments.bmi_lm` has trained, says as many
tokens as the training text of Penn Treebank has; beside it stand that text and words
without order. Measured are the information of far segments, reverse perplexity, and
bounds of the model's own information.
"""

from __future__ import annotations

from experiments.bmi_generation.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

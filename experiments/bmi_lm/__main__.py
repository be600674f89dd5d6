"""BMI on an eighth of Penn Treebank, around the AWD-LSTM.

    python -m experiments.bmi_lm --preset=base --data_dir=DATA
    python -m experiments.bmi_lm --preset=weights --data_dir=DATA
    python -m experiments.bmi_lm --preset=small --seeds=1,2,3 --data_dir=DATA

The presets are the stages of the study: settings of the model without BMI, the weight
of BMI, and the comparison. `paper` and `paper-wikitext-2` time some steps of each phase
at the paper's size, and project hours. A run that was killed goes on where it stood.
"""

from __future__ import annotations

from experiments.bmi_lm.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

"""Fine-tuning with masked words and IMM (Table 3).

    python -m experiments.imm_bert --preset=small --seeds=1,2,3 --data_dir=DATA

Fine-tunes the masked language models of `--encoders_dir`, which `experiments.electra
--preset=generators` has trained. A run that was killed goes on where it stood.
"""

from __future__ import annotations

from experiments.imm_bert.config import GRID
from experiments.kit.grids import run_grid

if __name__ == "__main__":
    run_grid(GRID, __doc__)

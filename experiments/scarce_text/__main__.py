"""Which recipe wins where text is scarce?

    python -m experiments.scarce_text --preset=search --data_dir=DATA
    python -m experiments.scarce_text --preset=trials --data_dir=DATA
    python -m experiments.scarce_text --preset=small --seeds=1,2,3 --data_dir=DATA

Recipes for language models on a share of Penn Treebank, each alone and mixed with
Kneser-Ney of order 5 of the same text: `--preset=search` and `trials` choose settings,
`small` compares, `counted` adds n-grams of all of the text, `curve` more and less text,
`corpora` and `shakespeare` other texts, `published` trains published models to the end.
"""

from __future__ import annotations

from experiments.kit.grids import run_grid
from experiments.scarce_text.config import GRID

if __name__ == "__main__":
    run_grid(GRID, __doc__)

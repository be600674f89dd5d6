"""Mutual information of far segments of real text: what the estimate depends on.

    python -m experiments.mi_text --preset=small --data_dir=DATA

Parts: `real` (each corpus whole, as the paper has it), `gaps` (equal lengths, against
the gap), `critics` (does the order of texts survive the critic?), `lengths` (against
the length of the text), `controls` (words and sentences shuffled), `steps` (critics
that are trained for longer), `seed_1` and `seed_2` (gaps, lengths and controls with
other first weights of critics), and `far`, `far_1` and `far_2` (critics at a gap where
the texts differ, trained for longer, by three seeds).
"""

from __future__ import annotations

from experiments.kit.parts import Study, run_study
from experiments.mi_text.config import PARTS, PRESETS

STUDY = Study(
    "mi_text",
    PRESETS,
    {name: f"estimating:{name}" for name in PARTS},
    "report:report",
    own_settings={name: f"{name}_" for name in PARTS},
    resuming=PARTS,
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

"""Proposition 5.1 in numbers: noising misses the truth that IMM finds.

    python -m experiments.imm_consistency --preset=paper --output_dir=runs/consistency

Parts: `proposition` (the counterexample), `curve` (the distance from the truth against
lambda), `bias` (of the k-sample loss against k). All take seconds.
"""

from __future__ import annotations

from experiments.imm_consistency.config import PRESETS
from experiments.kit.parts import Study, run_study

STUDY = Study(
    "imm_consistency",
    PRESETS,
    {
        "proposition": "study:proposition",
        "curve": "study:curve",
        "bias": "study:bias",
    },
    "report:report",
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

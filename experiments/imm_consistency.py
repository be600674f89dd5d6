"""Proposition 5.1 in numbers: noising misses the truth that IMM finds.

    python -m experiments.imm_consistency --preset=paper --output_dir=runs/consistency

Parts: `proposition` (the counterexample), `curve` (the distance from the truth against
lambda), `bias` (of the k-sample loss against k). All take seconds.
"""

from __future__ import annotations

from experiments.quiet import silence_tensorflow

silence_tensorflow()

from experiments.consistency import study  # noqa: E402
from experiments.consistency.config import PRESETS  # noqa: E402
from experiments.consistency.report import report  # noqa: E402
from experiments.parts import Study, run_study  # noqa: E402

STUDY = Study(
    "imm_consistency",
    PRESETS,
    {"proposition": study.proposition, "curve": study.curve, "bias": study.bias},
    report,
)

if __name__ == "__main__":
    run_study(STUDY)

"""Studies of averages of iterates: Two-Tailed Averaging beside the others.

    python -m experiments.averaging --preset=small --output_dir=runs/averaging

Parts: `trajectory`: all averages along one run of a language model; `drop`,
`late_drop`, `decay`: the same run with a falling learning rate instead; `overfitting`
and `basin`: where assumptions of 2TA fail; `lengths`: optimal lengths by brute force;
`least_squares`: a convex loss. A part that was killed goes on where it stood
(--resume).
"""

from __future__ import annotations

from experiments.averaging.config import PRESETS
from experiments.kit.parts import Study, run_study

STUDY = Study(
    "averaging",
    PRESETS,
    {
        "trajectory": "trajectory:compute",
        "drop": "trajectory:compute_drops",
        "late_drop": "trajectory:compute_late_drop",
        "decay": "trajectory:compute_decay",
        "overfitting": "trajectory:compute_overfitting",
        "basin": "trajectory:compute_basin",
        "lengths": "lengths:compute",
        "least_squares": "least_squares:compute",
    },
    "report:report",
    own_settings={
        "trajectory": ("starts", "decays", "shares"),
        "overfitting": "overfit_",
        "basin": "basin_",
        "lengths": "length_",
        "least_squares": "squares_",
    },
    resuming=(
        "trajectory",
        "drop",
        "late_drop",
        "decay",
        "overfitting",
        "basin",
        "lengths",
    ),
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

"""Variance of the gradients of Phase II: policy gradient beside IW-RAML (Figure 3).

    python -m experiments.bmi_variance --preset=small --data_dir=DATA --model=FILE

A model of `experiments.bmi_lm`, trained with Phase I, keeps its weights; both
estimators' gradients are drawn on the same 200 batches.
"""

from __future__ import annotations

from experiments.bmi_variance.config import PRESETS
from experiments.kit.parts import Study, run_study

STUDY = Study(
    "bmi_variance", PRESETS, {"variance": "variance:variance"}, "report:report"
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

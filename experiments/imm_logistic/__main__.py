"""Logistic regression helped by a model of one feature: Figures 1, 2 and 4.

    python -m experiments.imm_logistic --preset=paper --output_dir=runs/imm_logistic

Parts: `figure1` (how well the restricted task is done, by lambda), `figure2` (test
accuracy by the number of examples, with noising and interpolation), `figure4` (by
lambda and learning rate), `rule` (the rule for lambda, fitted again), `tuning`
(cross-validation), `choices` (other discriminants, bounds, a fitted restricted model).
Presets: smoke (under a minute), small, paper (the published settings).
"""

from __future__ import annotations

from experiments.imm_logistic.config import PRESETS
from experiments.kit.parts import Study, run_study

STUDY = Study(
    "imm_logistic",
    PRESETS,
    {
        "figure1": "study:figure_1",
        "figure2": "study:figure_2",
        "figure4": "study:figure_4",
        "rule": "study:rule",
        "tuning": "study:tuning",
        "choices": "choices:choices",
    },
    "report:report",
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

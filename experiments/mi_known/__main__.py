"""Estimators of mutual information where the truth is known.

    python -m experiments.mi_known --preset=small --output_dir=runs/mi_known

Parts: `gaussian` (20 pairs of normal variables, five estimators), `markov` and `topic`
(texts of known sources, through the protocol of `segment_information`).
"""

from __future__ import annotations

from experiments.kit.parts import Study, run_study
from experiments.mi_known.config import PRESETS

STUDY = Study(
    "mi_known",
    PRESETS,
    {
        "gaussian": "gaussian:gaussian",
        "markov": "sources:markov",
        "topic": "sources:topic",
    },
    "report:report",
    resuming=("markov", "topic"),
    own_settings={"gaussian": "gaussian_", "markov": "markov_", "topic": "topic_"},
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

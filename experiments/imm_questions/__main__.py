"""Small studies of the questions that the IMM paper leaves open.

    python -m experiments.imm_questions --preset=paper --output_dir=runs/imm_questions

Parts, by question: (1) `finite_sample`: the gain against examples per parameter.
(2) `restrictions`, `text_restrictions`: several restricted models at once, hierarchical
and non-linear ones. (3) `coefficient_rules`, `text_coefficients`: lambda without
cross-validation. (4) `imperfect`: wrong restricted models. (5) `regularisers`,
`text_regularisers`: with weight decay and dropout. (6) `digits`: images, of which the
restricted model sees a patch.
"""

from __future__ import annotations

from experiments.imm_questions.config import PRESETS
from experiments.kit.parts import Study, run_study

STUDY = Study(
    "imm_questions",
    PRESETS,
    {
        "finite_sample": "finite_sample:compute",
        "restrictions": "restrictions:compute",
        "text_restrictions": "text:restrictions",
        "coefficient_rules": "coefficient_rules:compute",
        "text_coefficients": "text:coefficients",
        "imperfect": "imperfect:compute",
        "regularisers": "regularisers:compute",
        "text_regularisers": "text:regularisers",
        "digits": "digits:compute",
    },
    "report:report",
    own_settings={"digits": "digit_", "text_coefficients": "text_coefficients"},
)

if __name__ == "__main__":
    run_study(STUDY, __doc__)

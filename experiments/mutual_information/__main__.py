"""Mutual information of segments of texts and of models: `rlm_tf coherence`.

python -m experiments.mutual_information --corpus=python-docs --gaps=0,10,100
"""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.program import start
from rlm_tf.commands.coherence import PROGRAM

_MODULE = "experiments.mutual_information"

if __name__ == "__main__":
    start(dataclasses.replace(PROGRAM, name=f"python -m {_MODULE}"))

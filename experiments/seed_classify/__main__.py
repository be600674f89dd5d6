"""A classifier from seed words: `rlm_tf seed_classify`.

python -m experiments.seed_classify --texts=python-docs --output_dir=runs/topics \
    --seed_words=experiments/seed_classify/python_docs_seeds.json
"""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.program import start
from rlm_tf.commands.seed_classify import PROGRAM

_MODULE = "experiments.seed_classify"

if __name__ == "__main__":
    start(dataclasses.replace(PROGRAM, name=f"python -m {_MODULE}"))

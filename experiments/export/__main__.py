r"""Writes a trained language model as a SavedModel that answers raw strings.

    python -m experiments.export --model=runs/ptb/model.keras \
        --vocabulary=runs/ptb/vocabulary.txt --output_dir=saved_models/ptb

`--model` is a `.keras` file with a language model or with the wrapper it was trained
in. Without it a demonstration model is trained first, on `--corpus`, with the settings
of `experiments.imm_lm --arm=none` and the same `--preset`: smoke (15 seconds), small
(minutes on two cores), paper (2 x 1500 units, weeks).

The SavedModel has the signatures `score`, `next_token` and `generate`; it needs nothing
but TensorFlow to run. `saved_models/README.md` tells how to serve it.
"""

from __future__ import annotations

from experiments.export.config import Config
from experiments.imm_lm.config import PRESETS
from experiments.kit.main import Binary, start


def main() -> None:
    """Exports, then shows what was written."""
    from experiments.export import exporting
    from rlm_tf.command_line.flags import config_from_flags

    exporting.main(config_from_flags(Config()))


BINARY = Binary("export", __doc__, main, settings=Config(), fixed=PRESETS)

if __name__ == "__main__":
    start(BINARY)

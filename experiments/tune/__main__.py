"""Tunes a recurrent language model with Gaussian-process bandits.

    python -m experiments.tune --space=mogrifier --preset=small --trials=20
    python -m experiments.tune --space=dynamic-words --run_dir=runs/mogrifier_lm/RUN

`--space` is one of the published search spaces; what it does not name comes from the
preset and the flags, as in `experiments.mogrifier_lm`. All trials have one budget of
parameters. The spaces `dynamic-...` are those of dynamic evaluation, of the model of a
finished run. A search that was killed goes on, its running trial included (--resume).
"""

from __future__ import annotations

from absl import flags

from experiments.kit import run_flags
from experiments.kit.main import Binary, start
from experiments.mogrifier_lm.presets import PRESETS
from experiments.mogrifier_lm.search_spaces import DYNAMIC_SPACES, SPACES


def define() -> None:
    """Defines the flags that are no settings."""
    flags.DEFINE_enum(
        "space", "mogrifier", sorted({**SPACES, **DYNAMIC_SPACES}), "What is tuned."
    )
    flags.DEFINE_string(
        "run_dir", None, "Of dynamic evaluation: folder of a run of mogrifier_lm."
    )
    flags.DEFINE_integer("trials", 20, "Trials in all.", lower_bound=1)
    flags.DEFINE_integer("initial", 8, "Random trials at the beginning.", lower_bound=1)
    flags.DEFINE_string("data_dir", None, "Folder of the corpora [RLM_DATA_DIR].")
    flags.DEFINE_string(
        "output_dir", "runs/tune", "Folder of everything that is written."
    )
    flags.DEFINE_list(
        "seeds", ["1"], "One seed, of training and of the tuner's choices."
    )
    flags.DEFINE_boolean(
        "resume", True, "Go on with the search that is there; else start anew."
    )
    run_flags.define_strategy_flags()


def main() -> None:
    """Runs the trials that are missing, then draws and lists them."""
    from experiments.mogrifier_lm import searching

    searching.main()


BINARY = Binary("tune", __doc__, main, PRESETS, define=define, without=("seed",))

if __name__ == "__main__":
    start(BINARY)

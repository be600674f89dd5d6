"""Runs `rlm_tf train` on five kinds of text, and small models with and without IMM.

    python -m experiments.own_text --minutes=5 --output_dir=runs/own_text

English, German, Chinese, program code, and 3,000 words of English; all from
documentation and sources of this system (`experiments.own_text.texts` says which), none
of them in the repository. A run whose row exists is skipped.
"""

from __future__ import annotations

from absl import flags

from experiments.kit.main import Binary, start
from experiments.own_text.config import ARMS


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_float("minutes", 5.0, "Of a run with a mixture.", lower_bound=0.1)
    flags.DEFINE_list("texts", [], "Only these texts.")
    flags.DEFINE_list(
        "arms",
        list(ARMS),
        "With a mixture, by today's and earlier defaults, and with noise; small: "
        "without IMM, with it, longer without.",
    )
    flags.DEFINE_list("seeds", ["1", "2", "3"], "Of each text and arm.")
    flags.DEFINE_string("output_dir", "runs/own_text", "Folder of texts and models.")
    flags.DEFINE_string("results_dir", None, "Folder of the rows [OUTPUT_DIR/results].")


def main() -> None:
    """Makes the texts, trains, writes the rows."""
    from experiments.own_text import running

    running.main()


BINARY = Binary("own_text", __doc__, main, define=define)

if __name__ == "__main__":
    start(BINARY)

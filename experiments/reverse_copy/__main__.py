"""The reverse copy task: LSTM and Mogrifier encoder-decoders on longer sequences.

    python -m experiments.reverse_copy --preset=small --output_dir=runs/reverse_copy

Every cell, length, learning rate and seed is a run with a row of its own; a run whose
row exists is skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

from absl import flags

from experiments.kit.main import Binary, start
from experiments.reverse_copy.config import PRESETS


def define() -> None:
    """Defines the flags that are no settings."""
    flags.DEFINE_string(
        "output_dir", "runs/reverse_copy", "Folder of everything that is written."
    )
    flags.DEFINE_string("results_dir", None, "Folder of the rows [OUTPUT_DIR/results].")
    flags.DEFINE_list("seeds", ["1"], "Comma-separated seeds, one run each.")
    flags.DEFINE_boolean(
        "resume",
        True,
        "Skip finished runs and go on with killed ones; else start anew.",
    )


def main() -> None:
    """Runs what is not done yet, then writes table and figure."""
    from experiments.kit import run_flags
    from experiments.kit.run_list import run_all
    from experiments.reverse_copy.report import report
    from experiments.reverse_copy.training import runs_of
    from rlm_tf.command_line.flags import config_from_flags

    flags_given = flags.FLAGS
    config = config_from_flags(PRESETS[flags_given.preset])
    config.check()
    runs = runs_of(config, run_flags.seeds())
    output, results = run_flags.folders()
    rows = run_all(runs, output, results, flags_given.resume)
    text = report(rows, output)
    (output / "table.md").write_text(text + "\n", "utf-8")
    print(f"\n{text}\n\n{output}", flush=True)


BINARY = Binary("reverse_copy", __doc__, main, PRESETS, define=define)

if __name__ == "__main__":
    start(BINARY)

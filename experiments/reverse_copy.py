"""The reverse copy task: LSTM and Mogrifier encoder-decoders on longer sequences.

    python -m experiments.reverse_copy --preset=small --output_dir=runs/reverse_copy

Every cell, length, learning rate and seed is a run with a row of its own; a run whose
row exists is skipped, and one that was killed goes on where it stood (--resume).
"""

from __future__ import annotations

from absl import flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

from experiments import run_flags  # noqa: E402
from experiments.copying.config import PRESETS, CopyConfig  # noqa: E402
from experiments.copying.report import report  # noqa: E402
from experiments.copying.training import runs_of  # noqa: E402
from experiments.run_list import run_all  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_enum("preset", "small", sorted(PRESETS), "Settings to start from.")
flags.DEFINE_string(
    "output_dir", "runs/reverse_copy", "Folder of everything that is written."
)
flags.DEFINE_string("results_dir", None, "Folder of the rows [OUTPUT_DIR/results].")
flags.DEFINE_list("seeds", ["1"], "Comma-separated seeds, one run each.")
flags.DEFINE_boolean(
    "resume", True, "Skip finished runs and go on with killed ones; else start anew."
)
config_flags.define_flags(CopyConfig)


def main(arguments: list[str]) -> None:
    """Runs what is not done yet, then writes table and figure."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
        config = config_flags.config_from_flags(PRESETS[FLAGS.preset])
        config.check()
        runs = runs_of(config, run_flags.seeds())
        output, results = run_flags.folders()
        rows = run_all(runs, output, results, FLAGS.resume)
        text = report(rows, output)
        (output / "table.md").write_text(text + "\n", "utf-8")
        print(f"\n{text}\n\n{output}", flush=True)


def run() -> None:
    """Entry point of `python -m experiments.reverse_copy`."""
    config_flags.start(main)


if __name__ == "__main__":
    run()

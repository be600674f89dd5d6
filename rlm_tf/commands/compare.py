"""Shows what several trained models reached, side by side.

    rlm_tf compare --models=DIR,DIR

They should be of the same text: bits per byte compare whatever their settings are.
"""

from __future__ import annotations

from typing import Any

from rlm_tf.command_line.flags import config_from_flags
from rlm_tf.command_line.json_files import read_json
from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.report.page import markdown_table
from rlm_tf.commands.settings import (
    RESULTS,
    CompareSettings,
    check_compare_settings,
    check_folder,
)


def main() -> None:
    """Prints the table."""
    rows = [("folder", "model", "test perplexity", "test bits/byte", "training")]
    for path in config_from_flags(CompareSettings()).models:
        folder = check_folder(path, "rlm_tf compare")
        found = read_json(
            folder / RESULTS,
            "let `rlm_tf train --overwrite` write it anew",
            ("scores", "training.seconds"),
        )
        for name, splits in found["scores"].items():
            test = splits["test"]
            rows.append(
                (
                    str(folder),
                    name,
                    f"{test['perplexity']:.2f}",
                    f"{test['bits_per_byte']:.3f}",
                    _minutes(name, found["training"]),
                )
            )
    print("\n".join(markdown_table(rows, left=2)))


def _minutes(name: str, training: dict[str, Any]) -> str:
    """Returns how long what a row shows was trained."""
    if name == "n-gram":
        # Counting takes seconds.
        return ""
    one = training["models"][0] if name.startswith("first model") else training
    return f"{one['seconds'] / 60:.1f} min"


PROGRAM = Program(
    "rlm_tf compare",
    __doc__,
    main,
    settings=CompareSettings(),
    check=check_compare_settings,
    tensorflow=False,
)

if __name__ == "__main__":
    start(PROGRAM)

"""Makes the texts, runs the command, writes a row a run."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from typing import Any

from absl import flags

from experiments.kit import machine
from experiments.kit.run_flags import folders
from experiments.own_text import texts
from experiments.own_text.config import ARMS, OPTIONS
from experiments.own_text.report import tables_of
from rlm_tf.command_line.json_files import read_json

FLAGS = flags.FLAGS


def main() -> None:
    """Runs what has no row yet."""
    names = FLAGS.texts or list(texts.NAMES)
    for given, known, flag in (
        (names, texts.NAMES, "texts"),
        (FLAGS.arms, ARMS, "arms"),
    ):
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ValueError(
                f"--{flag} must be some of {', '.join(known)}; found "
                f"{', '.join(unknown)}."
            )
    output, rows = folders()
    for name in names:
        path = output / "texts" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.make_text(name), "utf-8")
        for arm in FLAGS.arms:
            if f"{name}-{arm}" in rows:
                continue
            rows.write(f"{name}-{arm}", _row(name, arm, path, output))
    for table in tables_of(rows.read_all()).values():
        print(f"\n{table}")


def _row(
    name: str, arm: str, text: pathlib.Path, output: pathlib.Path
) -> dict[str, Any]:
    folder = output / f"{name}-{arm}"
    options = [f"--minutes={FLAGS.minutes:g}", *OPTIONS[arm]]
    command = [sys.executable, "-m", "rlm_tf.commands", "train", f"--text={text}"]
    subprocess.run([*command, f"--output_dir={folder}", *options], check=True)
    found = read_json(folder / "results.json", "remove the folder")
    return {
        "name": f"{name}-{arm}",
        "text": name,
        "arm": arm,
        "command": f"python -m experiments.own_text --minutes={FLAGS.minutes:g}",
        "train_command": f"rlm_tf train --text={name}.txt {' '.join(options)}",
        "commit": machine.commit(),
        "bytes": text.stat().st_size,
        **{
            key: found[key]
            for key in (
                "scores",
                "training",
                "plan",
                "mixture",
                "warnings",
                "seconds",
                "saved_model_megabytes",
                "vocabulary",
            )
        },
        "machine": machine.environment()["machine"],
        "finished": time.strftime("%Y-%m-%d"),
    }

"""Makes the texts, runs the command, writes a row a run."""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys
import time
from typing import Any

from absl import flags

from experiments.kit import machine
from experiments.kit.run_flags import folders, seeds
from experiments.own_text import texts
from experiments.own_text.config import ARMS, SMALL_BYTES, WHOLE_ARMS, options_of
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
    for name, arm in itertools.product(names, FLAGS.arms):
        path = _write_text(name, arm, output / "texts")
        for seed in seeds():
            run = f"{name}-{arm}-seed{seed}"
            if run not in rows:
                rows.write(run, _row(run, name, arm, seed, path, output / run))
    for table in tables_of(rows.read_all()).values():
        print(f"\n{table}")


def _write_text(name: str, arm: str, folder: pathlib.Path) -> pathlib.Path:
    if arm in WHOLE_ARMS:
        path, text = folder / f"{name}.txt", texts.make_text(name)
    else:
        path = folder / f"{name}-{SMALL_BYTES // 1000}kB.txt"
        text = texts.make_text(name, SMALL_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _row(
    run: str, name: str, arm: str, seed: int, text: pathlib.Path, folder: pathlib.Path
) -> dict[str, Any]:
    options = options_of(arm, FLAGS.minutes, seed)
    command = [sys.executable, "-m", "rlm_tf.commands", "train", f"--text={text}"]
    subprocess.run([*command, f"--output_dir={folder}", *options], check=True)
    found = read_json(folder / "results.json", "remove the folder")
    return {
        "name": run,
        "text": name,
        "arm": arm,
        "seed": seed,
        "command": f"python -m experiments.own_text --minutes={FLAGS.minutes:g}",
        "train_command": f"rlm_tf train --text={text.name} {' '.join(options)}",
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

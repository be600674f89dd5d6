"""Settings of `experiments.benchmark`."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything the binary can be told."""

    preset: str = setting("smoke", "Sizes and repetitions: smoke, small or paper.")
    rows: tuple[str, ...] = setting((), "Which rows, as listed above; empty: all.")
    seeds: tuple[int, ...] = setting(
        (1,), "Seeds of weights, data and draws; every one repeats all measurements."
    )
    data_dir: str = setting(
        "",
        "Folder with the data sets; empty: the environment's RLM_DATA_DIR. Without "
        "Penn Treebank there, the embedded corpus is used.",
    )
    output_dir: str = setting(
        "runs/benchmark", "Folder for rows.jsonl and benchmark.md."
    )
    results_dir: str = setting(
        "", "Folder for rows.jsonl; empty: that of --output_dir."
    )
    resume: bool = setting(
        False, "Skip rows that are there, measured with the same seeds and text."
    )

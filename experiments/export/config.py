"""Settings of `experiments.export`."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting

PRESETS = ("smoke", "small", "paper")


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything the binary can be told."""

    # === Model ===
    model: str = setting("", "The .keras file; empty: train a demonstration model.")
    vocabulary: str = setting(
        "", "The vocabulary's file; empty: vocabulary.txt beside --model."
    )
    context_length: int = setting(
        0, "Most tokens that a model without states (a Transformer) is run on."
    )
    # === Demonstration model ===
    preset: str = setting("smoke", "Its size: smoke, small or paper.")
    corpus: str = setting("python-docs", "What it is trained on.")
    data_dir: str = setting(
        "", "Folder with the data sets; empty: the environment's RLM_DATA_DIR."
    )
    # === Output ===
    training_dir: str = setting(
        "runs/export", "Where it is trained; one that was killed goes on from there."
    )
    output_dir: str = setting("saved_models/demo", "The SavedModel's directory.")
    overwrite: bool = setting(False, "Replace a SavedModel that is already there.")
    resume: bool = setting(False, "Keep a SavedModel that is already there, show it.")
    # === Sample ===
    seeds: tuple[int, ...] = setting(
        (1, 2), "One sample text each; the first is also the demonstration's seed."
    )
    prompt: str = setting("", "What the sample texts go on from.")
    max_tokens: int = setting(30, "Number of tokens of a sample text.")
    temperature: float = setting(0.8, "Temperature of the samples; 0: the best token.")
    top_k: int = setting(0, "Draw from the k most probable tokens; 0: from all.")
    top_p: float = setting(0.95, "Draw from the nucleus of this probability; 1: all.")
    eta: float = setting(0.0, "Epsilon of eta sampling; 0: all.")
    typical_p: float = setting(1.0, "Probability of the typical set; 1: all.")
    calibration: float = setting(0.0, "Strength of entropy calibration; 0: none.")

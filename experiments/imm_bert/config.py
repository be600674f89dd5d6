"""Settings of `experiments.imm_bert`, its arms and presets."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from experiments.kit.task_list import TASKS
from rlm_tf.command_line.flags import setting

# What is added to the loss of the task, where IMM's contexts come from, and the weight
# of masked words, where it is not that of the settings.
ARMS: Mapping[str, dict[str, Any]] = {
    "none": {},
    "mlm-tenth": {"mlm": True, "mlm_weight": 0.1},
    "imm-tenth": {"mlm": True, "mlm_weight": 0.1, "contexts": "bank"},
    "mlm": {"mlm": True},
    "imm": {"mlm": True, "contexts": "bank"},
    "imm-k5": {"mlm": True, "contexts": "sampled"},
}


@dataclasses.dataclass(frozen=True)
class FinetuneConfig:
    """A grid of runs: every task, arm, restart and seed."""

    arms: tuple[str, ...] = setting(
        ("none", "mlm-tenth", "imm-tenth"), f"Some of {', '.join(ARMS)}."
    )
    tasks: tuple[str, ...] = setting(
        ("sst2-tenth", "ag-news-1000", "ag-news-300"), f"Some of {', '.join(TASKS)}."
    )
    restarts: int = setting(2, "Runs of each encoder, of other heads and orders.")
    encoders_dir: str = setting(
        "runs/electra", "Output folder of `experiments.electra --preset=generators`."
    )
    encoder: str = setting(
        "3000steps-masked-g4-rate0.002-seed{seed}",
        "Folder in it, by the seed; or that of a BERT checkpoint, as --checkpoint.",
    )
    corpus: str = setting("wikitext-2", "What it was trained on, and P_hat counts.")
    fraction: float = setting(1.0, "Share of its training text.")
    pieces: int = setting(8000, "Size of its vocabulary.")
    rate: float = setting(1e-3, "The highest, of AdaMax.")
    batch_size: int = setting(32, "Examples of a step.")
    steps: int = setting(600, "Of 20 epochs at most, and 3 at least.")
    mlm_weight: float = setting(1.0, "Of masked words; arms of a tenth: 0.1.")
    coefficient: float = setting(0.2, "Of IMM.")
    contexts: int = setting(5, "Sampled contexts of a prediction (arm imm-k5).")
    bank_size: int = setting(4096, "Predictions that the bank keeps (arm imm).")

    checkpoint: str = setting(
        "",
        "Folder of a BERT checkpoint (Hugging Face's layout) to fine-tune instead, or "
        "that --project_steps times; without, it times one of BERT-base's size.",
    )
    project_steps: int = setting(
        0, "Time so many steps of BERT instead, and project the hours of Table 3."
    )

    def with_checkpoint(self) -> FinetuneConfig:
        """Returns the settings with `checkpoint`, where `encoder` is such a folder."""
        if (
            self.checkpoint
            or not (pathlib.Path(self.encoder) / "config.json").is_file()
        ):
            return self
        return dataclasses.replace(
            self,
            checkpoint=self.encoder,
            encoder=type(self).encoder,
            # One that is named is there to be fine-tuned.
            project_steps=0,
        )

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for name, known in (("arms", ARMS), ("tasks", TASKS)):
            given = getattr(self, name)
            if not given:
                raise ValueError(f"--{name} must name at least one.")
            for each in given:
                if each not in known:
                    raise ValueError(
                        f"--{name} must be some of {', '.join(known)}; found {each}."
                    )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "project_steps" and value == 0:
                continue
            if isinstance(value, int | float) and not value > 0:
                raise ValueError(f"--{field.name} must be positive, found {value}.")


PRESETS = {
    # Seconds: does everything run?
    "smoke": FinetuneConfig(
        arms=tuple(ARMS),
        tasks=("docs-halves",),
        restarts=1,
        encoder="8steps-masked-g1-rate0.002-seed{seed}",
        corpus="python-docs",
        fraction=0.05,
        pieces=300,
        batch_size=8,
        steps=20,
    ),
    "small": FinetuneConfig(),
    # One seed: the published contexts, and the tasks of Table 3 that there are.
    "published": FinetuneConfig(
        arms=tuple(ARMS),
        tasks=("sst2-tenth", "ag-news-1000", "cola", "rte", "mrpc"),
        restarts=1,
    ),
    # Table 3's own size: some steps are timed; with --encoder=DIR, a published BERT, it
    # is run.
    "paper": FinetuneConfig(
        arms=("none", "mlm", "imm-k5"),
        tasks=("cola", "mrpc", "rte", "qnli"),
        rate=3e-5,
        restarts=1,
        project_steps=2,
    ),
}
GRID = Grid("imm_bert", PRESETS, "training:runs_of", reads_data=True)

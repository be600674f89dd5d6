"""What a run of the study is, and what its folder is called."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from experiments.electra.config import ARMS, CHOSEN, GENERATOR_RATE, ElectraConfig


class ElectraRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to.
        arm: Of `ARMS`.
        generator: Layers of the generator, or of the only encoder.
        rate: Of the detector, or of all.
        weight: Of the detector's loss.
        seed: Of weights, dropout, masking and the order of rows.
    """

    config: ElectraConfig
    arm: str
    generator: int
    rate: float
    weight: float
    seed: int

    @property
    def chosen(self) -> dict[str, Any]:
        """What the run has of settings that are lists."""
        found: dict[str, Any] = {"arms": self.arm, "generators": self.generator}
        return {**found, "rates": self.rate, "weights": self.weight}

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run."""
        settings = {**dataclasses.asdict(self.config), **self.chosen, "seed": self.seed}
        # Where encoders are says nothing of them.
        settings["encoders_dir"] = None
        if not settings["table_a2"]:
            # Rows from before there was one have none.
            del settings["table_a2"]
        if self.arm == "masked":
            # It has no detector.
            names = ("weights", "standalone", "standalone_steps", "generator_rate")
            settings |= dict.fromkeys(names)
        elif ARMS[self.arm]["optimizers"] == 1:
            settings["generator_rate"] = None
        return settings


def name_of(run: ElectraRun) -> str:
    """Returns the name of a run, and of its folder."""
    config = run.config
    kind = f"{run.arm}-g{run.generator}-rate{run.rate:g}"
    if run.arm != "masked" and run.weight != 50.0:
        kind += f"-weight{run.weight:g}"
    if ARMS[run.arm].get("optimizers") == 2 and config.generator_rate != GENERATOR_RATE:
        kind += f"-generator{config.generator_rate:g}"
    if config.project_steps:
        return f"project-{config.layers}x{config.width}-{kind}"
    stage = "" if config.stage == "main" else f"{config.stage}-"
    return f"{stage}{config.steps}steps-{kind}-seed{run.seed}"


def standalone_name(config: ElectraConfig, generator: str) -> str:
    """Returns the name of the run that `LAYERS:SEED` means."""
    layers, _, seed = generator.partition(":")
    steps = config.standalone_steps
    config = dataclasses.replace(config, steps=steps, project_steps=0, stage="main")
    rate = CHOSEN["masked"]
    return name_of(ElectraRun(config, "masked", int(layers), rate, 50.0, int(seed)))

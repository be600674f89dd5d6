"""The presets of `experiments.imm_reinforce`."""

from __future__ import annotations

from experiments.kit.grid_config import ReinforceConfig

PRESETS = {
    "smoke": ReinforceConfig(epochs=(2, 3), search_epochs=(2,), runs=2, rollouts=2),
    "small": ReinforceConfig(epochs=(10, 50, 100, 200), search_epochs=(50,), runs=10),
    # Figure 3 and the published code.
    "paper": ReinforceConfig(),
}

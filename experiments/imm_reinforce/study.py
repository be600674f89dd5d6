"""The parts of the study: Figure 3, the search for lambda, Figure 5."""

from __future__ import annotations

from typing import Any

import tqdm

from experiments.kit.grid_config import ReinforceConfig
from experiments.kit.grid_study import Arm, GridStudy, trained_cells
from rlm_tf.envs import reward_landscape
from rlm_tf.objective_model.term import coefficient_from_ratio

RATIOS = tuple(round(0.1 * number, 1) for number in range(10))


def figure_3(config: ReinforceConfig) -> dict[str, Any]:
    """Returns the cells of Figure 3, and what they took after start-up."""
    return trained_cells(config)


def coefficient_search(config: ReinforceConfig) -> dict[str, Any]:
    """Returns the returns of every ratio lambda / (1 + lambda), max-utility target."""
    study = GridStudy(config)
    target = study.target(0.0)
    arms = [Arm(target, coefficient_from_ratio(ratio)) for ratio in RATIOS]
    cells = []
    for epochs in tqdm.tqdm(config.search_epochs, unit="epoch count", disable=None):
        for ratio, values in zip(RATIOS, study.returns(arms, epochs), strict=True):
            cells.append({"ratio": ratio, "epochs": epochs, "returns": values.tolist()})
    return {"cells": cells}


def landscape(config: ReinforceConfig) -> dict[str, Any]:
    """Returns the rewards of all cells: Figure 5."""
    rewards = reward_landscape(config.size, width=config.reward_width)
    return {"rewards": rewards.reshape(config.size, -1).tolist()}

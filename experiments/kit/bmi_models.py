"""Models that `experiments.bmi_lm` has trained, for studies that read them."""

from __future__ import annotations

import pathlib

from experiments.kit.weights_digest import weights_digest


def _trained_files(
    folder: str, arm: str, weight: float, seed: int
) -> list[pathlib.Path]:
    """Returns the files of the model of an arm and a seed; there should be one.

    Args:
        folder: The `--output_dir` of `experiments.bmi_lm`.
        arm: One of its arms.
        weight: Of BMI, where the arm has it.
        seed: Of the run.
    """
    weighed = f"*-{arm}-weight{weight:g}-seed{seed}"
    return [
        path
        for name in (f"*-{arm}-seed{seed}", weighed)
        for path in sorted(pathlib.Path(folder).glob(f"{name}/model.keras"))
    ]


def trained_file(folder: str, arm: str, weight: float, seed: int) -> pathlib.Path:
    """Returns the file of the model of an arm and a seed.

    Raises:
        FileNotFoundError: If there is not the one.
    """
    found = _trained_files(folder, arm, weight, seed)
    if len(found) != 1:
        raise FileNotFoundError(
            f"--models_dir={folder} must have one trained model of arm {arm}, seed "
            f"{seed}; found {len(found)}. `python -m experiments.bmi_lm "
            "--preset=small` trains them."
        )
    return found[0]


def model_digest(folder: str, arm: str, weight: float, seed: int) -> str | None:
    """Returns what tells a model from others; None if there is not the one."""
    found = _trained_files(folder, arm, weight, seed)
    return weights_digest(found[0]) if len(found) == 1 else None

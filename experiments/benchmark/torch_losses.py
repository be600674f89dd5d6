"""The losses of torchdistill whose definitions are ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TorchLoss = Callable[[Any, Any], Any]
# Features are named in what the losses read.
_PATH = {"module_path": "f", "module_io": "output"}


def torch_losses(temperature: float) -> Mapping[str, TorchLoss]:
    """Returns torchdistill's losses, (teacher, student) to a scalar, by our names.

    Logits or vectors `[B, V]` go into `kd`, `standardised_kd`, `dist`, `relational` and
    `probabilistic`; maps `[B, C, H, W]` into `attention` and
    `activation_boundary`. Its KD is not multiplied by T^2 where labels have no part;
    its similarities (SP) have rows of length 1 by absolute values, which ours have not.

    Args:
        temperature: T of what is made of logits.
    """
    from torchdistill.losses import mid_level

    pair = {"f": {"student": _place("f"), "teacher": _place("f")}}
    ends = {
        f"{who}_{what}": value
        for who in ("student", "teacher")
        for what, value in _PATH.items()
    }
    paths = {"student_output_path": "f", "teacher_output_path": "f"}
    found = {
        "kd": mid_level.KDLoss(**ends, alpha=0.0, temperature=temperature),
        "standardised_kd": mid_level.LogitStdKDLoss(
            **ends, alpha=0.0, temperature=temperature
        ),
        "dist": mid_level.DISTLoss(**ends, beta=1.0, gamma=2.0, tau=temperature),
        "relational": mid_level.RKDLoss(
            **paths, dist_factor=25.0, angle_factor=50.0, reduction="mean"
        ),
        "probabilistic": mid_level.PKTLoss(**ends),
        "attention": mid_level.ATLoss(pair),
        "activation_boundary": mid_level.AltActTransferLoss(
            pair, margin=1.0, reduction="mean"
        ),
    }
    return {name: _of_tensors(loss) for name, loss in found.items()}


def _place(path: str) -> dict[str, str]:
    return {"path": path, "io": "output"}


def _of_tensors(loss: Any) -> TorchLoss:
    return lambda teacher, student: loss(
        {"f": {"output": student}}, {"f": {"output": teacher}}
    )

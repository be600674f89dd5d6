"""What the study runs."""

from __future__ import annotations

# As the command chooses, with a mixture; then one small model of fixed size without
# induced model matching, with it for as many epochs, and without it for more epochs
# than induced model matching takes time for (a step takes at most 1.46 times as long).
ARMS = ("mixture", "none", "imm", "longer")
# Of the text that the small models are trained on.
SMALL_BYTES = 80_000
_SMALL_OPTIONS = ("--nomixture", "--width=128", "--nodynamic")
_EPOCHS = {"none": 40, "imm": 40, "longer": 59}


def options_of(arm: str, minutes: float, seed: int) -> list[str]:
    """Returns the flags of `rlm_tf train` for a run."""
    if arm == "mixture":
        return [f"--minutes={minutes:g}", f"--seed={seed}"]
    return [
        *_SMALL_OPTIONS,
        f"--epochs={_EPOCHS[arm]}",
        "--imm" if arm == "imm" else "--noimm",
        f"--seed={seed}",
    ]

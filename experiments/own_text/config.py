"""What the study runs."""

from __future__ import annotations

# As the command chooses, with a mixture; then one small model of fixed size for as many
# epochs, without induced model matching and with it.
ARMS = ("mixture", "none", "imm")
# Of the text that the small models are trained on.
SMALL_BYTES = 80_000
SMALL_OPTIONS = ("--nomixture", "--epochs=40", "--width=128", "--nodynamic")


def options_of(arm: str, minutes: float, seed: int) -> list[str]:
    """Returns the flags of `rlm_tf train` for a run."""
    if arm == "mixture":
        return [f"--minutes={minutes:g}", f"--seed={seed}"]
    return [*SMALL_OPTIONS, "--imm" if arm == "imm" else "--noimm", f"--seed={seed}"]


def seeds_of(arm: str, seeds: list[int]) -> list[int]:
    """Returns the seeds of an arm; what takes minutes whatever it does has one."""
    return seeds[:1] if arm == "mixture" else seeds

"""What the study runs."""

from __future__ import annotations

# As the command chooses, with a mixture, the same with noise, and as it chose before;
# then, as it chose before, one small model of fixed size without induced model
# matching, with it for as many epochs, and without it for more epochs than induced
# model matching takes time for (a step takes at most 1.46 times as long).
ARMS = ("mixture", "noising", "earlier", "none", "imm", "longer")
# Those of a whole text.
WHOLE_ARMS = ("mixture", "noising", "earlier")
# Of the text that the small models are trained on.
SMALL_BYTES = 80_000
_SMALL_OPTIONS = ("--nomixture", "--width=128", "--nodynamic")
# What the command had for scarce text before `experiments.scarce_text` was run.
_EARLIER = ("--dropouts=0.5,0.3,0.3,0.6", "--learning_rate=0.003", "--l2=0")
_OF_WHOLE_TEXTS = {"earlier": _EARLIER, "noising": ("--noising=0.1",)}
_EPOCHS = {"none": 40, "imm": 40, "longer": 59}


def options_of(arm: str, minutes: float, seed: int) -> list[str]:
    """Returns the flags of `rlm_tf train` for a run."""
    if arm in WHOLE_ARMS:
        own = _OF_WHOLE_TEXTS.get(arm, ())
        return [f"--minutes={minutes:g}", *own, f"--seed={seed}"]
    return [
        *_SMALL_OPTIONS,
        *_EARLIER,
        f"--epochs={_EPOCHS[arm]}",
        "--imm" if arm == "imm" else "--noimm",
        f"--seed={seed}",
    ]

"""What `rlm_tf train` knows of the networks that it can train."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Defaults of a kind of network.

    Attributes:
        shown: What the plan calls it.
        num_layers: Layers or blocks.
        window: Time steps of a window.
        learning_rates: Of Adam: training tokens below which a rate is that of scarce
            text, and the rate.
        beta_1: Of Adam.
        widths: Training tokens below which a width is enough, and the width.
        narrower: Widths to fall back on where the time is short.
        dropouts: Training tokens below which dropout rates are those of scarce text,
            and the rates.
        l2s: Likewise, penalties of squared weights.
        layer_cost: Multiplications a token of a layer of a width.
    """

    shown: str
    num_layers: int
    window: int
    learning_rates: tuple[tuple[int | None, float], ...]
    beta_1: float
    widths: tuple[tuple[int | None, int], ...]
    narrower: tuple[int, ...]
    dropouts: tuple[tuple[int | None, tuple[float, ...]], ...]
    l2s: tuple[tuple[int | None, float], ...]
    layer_cost: Callable[[int], int]


# Training tokens below which text is scarce: between a quarter and a half of Penn
# Treebank, where what 12 trials on an eighth have found loses to half the dropout
# (`experiments.scarce_text`, 20 passes of each). Of transformers a guess.
_SCARCE, _SCARCE_OF_TRANSFORMERS = 330_000, 1_000_000
# Tokens before a token that a transformer sees, and its heads.
CONTEXT_LENGTH = 128
NUM_HEADS = 4

OF = {
    "lstm": Architecture(
        shown="LSTM, tied, skip",
        num_layers=2,
        window=35,
        # Of scarce text what those trials have found, with their dropouts and penalty.
        learning_rates=((_SCARCE, 0.007), (None, 0.003)),
        beta_1=0.0,
        widths=((50_000, 128), (300_000, 256), (2_000_000, 400), (None, 650)),
        narrower=(400, 256, 192, 128, 96, 64),
        # On inputs, between layers, on states, on outputs.
        dropouts=(
            (_SCARCE, (0.33, 0.33, 0.3, 0.69)),
            (10_000_000, (0.3, 0.2, 0.2, 0.4)),
            (None, (0.1, 0.1, 0.1, 0.2)),
        ),
        l2s=((_SCARCE, 3e-4), (None, 0.0)),
        layer_cost=lambda width: 8 * width * width,
    ),
    "transformer": Architecture(
        shown=f"transformer, tied, {NUM_HEADS} heads, rotary positions",
        num_layers=4,
        window=64,
        learning_rates=((None, 0.002),),
        beta_1=0.9,
        widths=((50_000, 128), (300_000, 192), (2_000_000, 256), (None, 512)),
        narrower=(256, 192, 128, 96, 64),
        # On inputs and in blocks, on outputs.
        dropouts=(
            (_SCARCE_OF_TRANSFORMERS, (0.3, 0.4)),
            (10_000_000, (0.2, 0.2)),
            (None, (0.1, 0.1)),
        ),
        l2s=((None, 0.0),),
        layer_cost=lambda width: 12 * width * width + 2 * CONTEXT_LENGTH * width,
    ),
}

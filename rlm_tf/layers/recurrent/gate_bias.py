"""Initialisers for the biases of gated cells."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.seeds import reseeded


@keras.saving.register_keras_serializable("rlm_tf")
class Chrono(keras.initializers.Initializer):
    """Forget biases for dependencies of many lengths (Tallec and Ollivier 2018).

        b = ln u,  u ~ U(1, T_max - 1)

    A forget gate `sigmoid(b)` with `b = ln(T - 1)` forgets over T steps. As the forget
    gate's part of a `GateBias` it is all that the gate starts with; the paper also
    starts the input gate at -b (`GateBias(..., opposite_gate=0)`), Melis (2023) only
    the forget gate.

    Args:
        longest: T_max > 2, the longest dependency expected. The tuning range of Melis
            (2023, chapter 4) is e^2 to e^5.
        seed: Of the draws. Equal seeds give equal b.

    Raises:
        ValueError: If `longest` is not above 2.
    """

    def __init__(self, longest: float, seed: int | None = None) -> None:
        check_range("Chrono", 0.0, math.inf, longest=longest)
        if longest <= 2:
            raise ValueError(
                f"Chrono: `longest` must be above 2 and finite, found {longest}."
            )
        self.longest = longest
        self.seed = seed

    def __call__(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        uniform = keras.random.uniform(
            shape, 1.0, self.longest - 1.0, dtype=dtype, seed=self.seed
        )
        return keras.ops.log(uniform)

    def get_config(self) -> dict[str, Any]:
        return {"longest": self.longest, "seed": self.seed}


@keras.saving.register_keras_serializable("rlm_tf")
class GateBias(keras.initializers.Initializer):
    """A bias of several gates, in which the forget gate starts differently.

    Cells with this `bias_initializer` add no `forget_bias` of their own unless asked.

    Args:
        forget: Initialiser for the forget gate's part.
        others: Initialiser for the other parts.
        forget_gate: Which part it is; 1 for cells with the gates i, f, g, o.
        num_gates: Number of parts of equal size.
        opposite_gate: Part that starts at minus the forget gate's; None: none does.
        seed: Of both, in place of their own; None: they keep their own.

    Raises:
        ValueError: If there is no such part; when called, if the bias cannot be divided
            into `num_gates` parts.
    """

    def __init__(
        self,
        forget: Any,
        others: Any = "zeros",
        forget_gate: int = 1,
        num_gates: int = 4,
        opposite_gate: int | None = None,
        seed: int | None = None,
    ) -> None:
        check_integer("GateBias", "num_gates", num_gates, 1)
        parts = {"forget_gate": forget_gate}
        if opposite_gate is not None:
            parts["opposite_gate"] = opposite_gate
        for name, part in parts.items():
            check_integer("GateBias", name, part, 0)
            if part >= num_gates:
                raise ValueError(
                    f"GateBias: `{name}` must be below `num_gates`, {num_gates}, "
                    f"found {part}."
                )
        if opposite_gate == forget_gate:
            raise ValueError(
                "GateBias: `opposite_gate` must be another part than `forget_gate`, "
                f"found {forget_gate} for both."
            )
        self.forget = keras.initializers.get(forget)
        self.others = keras.initializers.get(others)
        self.forget_gate = forget_gate
        self.num_gates = num_gates
        self.opposite_gate = opposite_gate
        self.seed = seed

    def __call__(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        if len(shape) != 1 or shape[0] % self.num_gates:
            raise ValueError(
                f"GateBias: the bias must be a vector of {self.num_gates} equal parts, "
                f"found shape {tuple(shape)}."
            )
        part = (shape[0] // self.num_gates,)
        parts = []
        for gate in range(self.num_gates):
            initializer = self.forget if gate == self.forget_gate else self.others
            if self.seed is not None:
                initializer = reseeded(initializer, self.seed + gate)
            parts.append(initializer(part, dtype=dtype))
        if self.opposite_gate is not None:
            parts[self.opposite_gate] = -parts[self.forget_gate]
        return keras.ops.concatenate(parts)

    def get_config(self) -> dict[str, Any]:
        return {
            "forget": keras.initializers.serialize(self.forget),
            "others": keras.initializers.serialize(self.others),
            "forget_gate": self.forget_gate,
            "num_gates": self.num_gates,
            "opposite_gate": self.opposite_gate,
            "seed": self.seed,
        }


def forget_bias_beside(forget_bias: float | None, bias_initializer: Any) -> float:
    """Returns what a cell adds to its forget gate: 1, or 0 beside a `GateBias`.

    Args:
        forget_bias: What was asked for; None: nothing.
        bias_initializer: Of the cell.
    """
    if forget_bias is not None:
        return forget_bias
    return 0.0 if isinstance(bias_initializer, GateBias) else 1.0

"""The Mogrifier: inputs and state gate each other before a recurrent cell sees them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell, masked
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent.recurrent_cell import Product, States, Weights
from rlm_tf.nested_config import NestedConfig
from rlm_tf.seeds import SeededInitializers

CONDITIONS = ("zigzag", "original", "none")


@keras.saving.register_keras_serializable("rlm_tf")
class MogrifierCell(NestedConfig, HiddenStateCell):
    """Mogrification before any cell (Melis et al. 2020, arXiv 1909.01792, eq. 2).

        x^i = 2 sigmoid(h^{i-1} Q^i + b^i) * x^{i-2}    for odd i in 1..r
        h^i = 2 sigmoid(x^{i-1} R^i + b^i) * h^{i-2}    for even i in 1..r
        x^{-1} = x_t, h^0 = h_tm1; the cell gets the last of each

    Every round has a matrix of its own. With rank k each is a product of two factors,
    `[n, k]` and `[k, m]`. The paper's equations have no biases b; the authors' code has
    them, starting at zero. State dropout, that of the wrapped cell, comes before.

    `condition` names what gates see: "zigzag", as above; "original", the ablation
    without zigzag, in which all gates see `x_t` and `h_tm1` themselves; "none", the
    ablation of section 2.3.4 in which inputs and state are scaled by learned factors
    `2 sigmoid(b^i)`, whatever they are.

    Args:
        cell: The cell that gets what is left; an LSTM, RLSTM, GRU, Elman cell.
        rounds: r >= 0; 0 is the cell itself, 1 gates the inputs only. The authors found
            5 and 6 best.
        rank: Rank k of the gates' matrices; None or k <= 0: full. The authors' search
            space is -20 to 100; they found 40 to 90 best.
        use_gate_bias: Whether gates have biases.
        condition: "zigzag", "original" or "none".
        seed: Of the initialisation of the gates' matrices; None: drawn.
        **kwargs: Of `keras.layers.Layer`; `dtype` is that of the cell.

    Raises:
        ValueError: If `cell` is no `HiddenStateCell` or a `MogrifierCell`, or an
            argument is out of range.
    """

    def __init__(
        self,
        cell: HiddenStateCell,
        rounds: int = 5,
        rank: int | None = None,
        *,
        use_gate_bias: bool = True,
        condition: str = "zigzag",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if not isinstance(cell, HiddenStateCell):
            raise ValueError(
                f"{name}: `cell` must be an rlm_tf.layers.HiddenStateCell, found "
                f"{type(cell).__name__}."
            )
        if isinstance(cell, MogrifierCell):
            raise ValueError(f"{name}: `cell` is mogrified already.")
        for rate in ("state_dropout", "weight_drop"):
            if rate in kwargs:
                raise ValueError(
                    f"{name}: dropout is that of the wrapped cell; give `{rate}` to it."
                )
        kwargs.setdefault("dtype", cell.dtype_policy)
        super().__init__(cell.units, seed=seed, **kwargs)
        if self.compute_dtype != cell.compute_dtype:
            raise ValueError(
                f"{name}: `dtype` must be that of the wrapped cell, "
                f"{cell.compute_dtype}, found {self.compute_dtype}."
            )
        check_integer(name, "rounds", rounds, 0)
        if rank is not None and (
            isinstance(rank, bool) or not isinstance(rank, int | np.integer)
        ):
            raise ValueError(
                f"{name}: `rank` must be an integer or None, found {rank}."
            )
        if condition not in CONDITIONS:
            raise ValueError(
                f"{name}: `condition` must be one of {', '.join(CONDITIONS)}; found "
                f"{condition!r}."
            )
        if condition == "none" and not use_gate_bias:
            raise ValueError(
                f'{name}: condition "none" leaves gates their biases only.'
            )
        self.cell = cell
        self.rounds = rounds
        self.rank = rank
        self.use_gate_bias = use_gate_bias
        self.condition = condition
        self.state_size = cell.state_size
        self.output_size = cell.output_size
        # Drawn once, by whichever of the two loops asks.
        self.state_dropout = self.recurrent_dropout = cell.state_dropout
        self.weight_drop = cell.weight_drop
        if cell.state_dropout > 0:
            self.seed_generator = cell.seed_generator

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if not self.cell.built:
            self.cell.build(input_shape)
        self._gates: dict[str, keras.Variable] = {}
        widths = (int(input_shape[-1] or 0), self.units)
        seed = self.seed
        if seed is None:
            seed = int(keras.random.randint((), 0, 2**31 - 1, dtype="int32"))
        initializers = SeededInitializers(keras.initializers.RandomNormal(), seed)
        for i in range(1, self.rounds + 1):
            # Odd rounds gate the inputs by the state, even ones the other way round.
            gated, seen = widths if i % 2 else widths[::-1]
            for name, shape, stddev in self._matrices(i, seen, gated):
                self._gates[name] = self.add_weight(
                    name=name,
                    shape=shape,
                    initializer=keras.initializers.TruncatedNormal(
                        stddev=stddev, seed=initializers.seeds(1)[0]
                    ),
                )
            if self.use_gate_bias:
                bias = f"gate_{i}_bias"
                self._gates[bias] = self.add_weight(
                    name=bias, shape=(gated,), initializer="zeros"
                )
        self.built = True

    def _matrices(
        self, i: int, seen: int, gated: int
    ) -> list[tuple[str, tuple[int, int], float]]:
        """Returns name, shape and standard deviation of the matrices of round i."""
        if self.condition == "none":
            return []
        if self.rank is None or self.rank <= 0:
            # The deviation before truncation at two of them; the variance is 1 / seen.
            return [(f"gate_{i}_kernel", (seen, gated), seen**-0.5 / 0.87962566)]
        # As in the authors' code: the product has variance about 1 / seen.
        stddev = (seen * self.rank) ** -0.25
        return [
            (f"gate_{i}_left", (seen, self.rank), stddev),
            (f"gate_{i}_right", (self.rank, gated), stddev),
        ]

    # === Step ===

    def project_inputs(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the inputs: what the cell makes of them depends on the state."""
        return inputs if self.rounds else self.cell.project_inputs(inputs)

    def loop_weights(self) -> Weights:
        if not self.rounds:
            return self.cell.recurrent_weights()
        gates = {name: tf.convert_to_tensor(v) for name, v in self._gates.items()}
        return {
            **self.cell.input_weights(),
            **self.cell.recurrent_weights(),
            **gates,
        }

    def drop_weights(self, weights: Weights) -> Weights:
        """Drops what the wrapped cell drops: no gates' matrices."""
        return self.cell.drop_weights(weights)

    def step(
        self,
        inputs_t: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        x, h = inputs_t, masked(states[0], weights)
        if self.rounds:
            x, h = self.mogrify(x, h, weights, product)
            x = self.cell.project(x, weights, product)
        return self.cell.transition(x, h, states, weights, product)

    def mogrify(
        self, x: tf.Tensor, h: tf.Tensor, weights: Weights, product: Product
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the gated inputs `[B, D]` and the gated state `[B, H]`."""
        original = (x, h)
        for i in range(1, self.rounds + 1):
            seen_x, seen_h = original if self.condition == "original" else (x, h)
            gate = self._gate(i, seen_h if i % 2 else seen_x, weights, product)
            if i % 2:
                x = gate * x
            else:
                h = gate * h
        return x, h

    def _gate(
        self, i: int, seen: tf.Tensor, weights: Weights, product: Product
    ) -> tf.Tensor:
        """Returns the factors of round i, between 0 and 2."""
        name = f"gate_{i}"
        logits: Any = 0.0
        if f"{name}_kernel" in weights:
            logits = product(seen, weights[f"{name}_kernel"])
        elif f"{name}_left" in weights:
            low = product(seen, weights[f"{name}_left"])
            logits = product(low, weights[f"{name}_right"])
        if self.use_gate_bias:
            logits += weights[f"{name}_bias"]
        return 2.0 * tf.sigmoid(logits)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in ("units", "state_dropout", "weight_drop"):
            config.pop(name)
        return {
            **config,
            "cell": keras.saving.serialize_keras_object(self.cell),
            "rounds": self.rounds,
            "rank": self.rank,
            "use_gate_bias": self.use_gate_bias,
            "condition": self.condition,
        }


@keras.saving.register_keras_serializable("rlm_tf")
class MogrifierLSTMCell(MogrifierCell):
    """The Mogrifier LSTM: `MogrifierCell(LSTMCell(units, ...), rounds, rank, ...)`.

    By default matrices have full rank, as in the paper's equations, to which the biases
    of the rounds' gates and the forget bias of 1 are added, as in the authors' code.
    Their tuned models have `cap_input_gate=True` and a rank of 24 to 100.

    Args:
        units: Width H of the states and of the output.
        rounds: See `MogrifierCell`.
        rank: See `MogrifierCell`.
        use_gate_bias: See `MogrifierCell`.
        condition: See `MogrifierCell`.
        seed: Of the gates' matrices and of state dropout.
        **kwargs: `dtype` and `name` of the cell, and the other arguments of `LSTMCell`.
    """

    def __init__(
        self,
        units: int,
        rounds: int = 5,
        rank: int | None = None,
        *,
        use_gate_bias: bool = True,
        condition: str = "zigzag",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        own = {key: kwargs.pop(key) for key in ("name", "trainable") if key in kwargs}
        cell = LSTMCell(units, seed=seed, **kwargs)
        super().__init__(
            cell,
            rounds,
            rank,
            use_gate_bias=use_gate_bias,
            condition=condition,
            seed=seed,
            dtype=cell.dtype_policy,
            **own,
        )

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("cell")
        of_cell = self.cell.get_config()
        own = ("name", "trainable", "seed")
        return {**config, **{k: v for k, v in of_cell.items() if k not in own}}

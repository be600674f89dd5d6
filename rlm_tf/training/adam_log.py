"""How large gradients and steps of Adam are, for each part of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from rlm_tf.optimizers.decoupled_optimizer import single_optimizers
from rlm_tf.optimizers.part_owners import part_owners


class AdamLog(keras.callbacks.Callback):
    """Adds sizes of gradients and of steps to the logs of every epoch, part by part.

    Read from the moments that Adam keeps, so that training takes no longer:

        gradient_norm_PART   sqrt(sum v^), the root mean square of the gradient's norm
                             over the last 1 / (1 - beta_2) steps or so, clipped as it
                             was (what it was before, `Electra` logs)
        update_PART          the root mean square of rate * m^ / (sqrt(v^) + eps) over
                             the part's parameters: what the last step changed each by,
                             weight decay apart; the rate that Adam has in effect

    Put it before callbacks that read the logs. Parts are those of the model's `parts`;
    what two of them share is of the part "shared". For a model without parts, names
    have no ending.

    Raises:
        ValueError: When training begins, if an optimiser is no `Adam` or `AdamW`.
    """

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        for part, optimizer in single_optimizers(self.model.optimizer).items():
            if not isinstance(optimizer, keras.optimizers.Adam):
                of = f" of `{part}`" if part else ""
                raise ValueError(
                    f"{type(self).__name__}: the optimiser{of} must be Adam or AdamW, "
                    f"found {type(optimizer).__name__}."
                )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is None:
            return
        sums: dict[str, np.ndarray] = {}
        for part, found in self._moments():
            sums[part] = sums.get(part, np.zeros(3)) + found
        for part, (squares, updates, size) in sums.items():
            ending = f"_{part}" if part else ""
            logs[f"gradient_norm{ending}"] = float(np.sqrt(squares))
            logs[f"update{ending}"] = float(np.sqrt(updates / size))

    def _moments(self) -> Iterator[tuple[str, np.ndarray]]:
        """Gives the part of each variable, its sums of v^ and of squares, its size."""
        parts = part_owners(getattr(self.model, "parts", {}))
        for optimizer in single_optimizers(self.model.optimizer).values():
            steps = int(optimizer.iterations.numpy())
            if not steps:
                continue
            rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
            mean_share = 1 - optimizer.beta_1**steps
            square_share = 1 - optimizer.beta_2**steps
            for variable, mean, square in zip(
                optimizer._trainable_variables,
                optimizer._momentums,
                optimizer._velocities,
                strict=True,
            ):
                v = np.asarray(square.value, np.float64) / square_share
                m = np.asarray(mean.value, np.float64) / mean_share
                change = rate * m / (np.sqrt(v) + optimizer.epsilon)
                sums = np.array([v.sum(), np.square(change).sum(), v.size])
                yield parts.get(id(variable), ""), sums

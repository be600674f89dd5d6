"""The protocol of cells that run in the fast recurrent loop."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf

States = list[tf.Tensor]
Weights = dict[str, tf.Tensor]
Product = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
Step = Callable[[tf.Tensor, States, Weights, Product], tuple[tf.Tensor, States]]


class RecurrentCell(keras.layers.Layer):
    """One time step of a recurrent network, written once for two kinds of loop.

    A subclass describes its step; this class makes it a cell of `keras.layers.RNN`, and
    `rlm_tf.layers.Recurrent` runs it in the fast loop. Both give the same numbers.

    A subclass sets `state_size` (list of widths) and `output_size`, creates its weights
    in `build`, and implements

    * `project_inputs(inputs)`: whatever does not depend on the states. The loop calls
      it once for all time steps, outside of the iteration;
    * `loop_weights()`: name -> tensor, everything that `step` needs;
    * `step(inputs_t, states, weights, product)`: one time step, a pure function of its
      arguments. It must write each matrix product as `product(x, weights[name])`, which
      means `x @ weights[name]`: the loop stores the products, so that the backward pass
      does not repeat them, and computes the gradient of each matrix in one product
      over all time steps. Weights may also be used in other ways (element by element);
      their gradients are then added up step by step.
    """

    state_size: list[int]
    output_size: int

    def project_inputs(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the part of the step that only sees inputs.

        Args:
            inputs: `[..., D]`.

        Returns:
            `[..., P]`, what `step` receives slice by slice.
        """
        return inputs

    def loop_weights(self) -> Weights:
        """Returns the tensors that `step` uses, in the compute dtype."""
        raise NotImplementedError(f"{type(self).__name__} has no `loop_weights`.")

    def step(
        self,
        inputs_t: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        """Returns the output `[B, output_size]` and the new states of one time step."""
        raise NotImplementedError(f"{type(self).__name__} has no `step`.")

    def dropout_masks(self, states: States) -> Weights:
        """Returns what `step` gets besides `loop_weights` in training: masks.

        The loop draws them once, for all of its time steps.

        Args:
            states: The initial states, for their shapes.
        """
        del states
        return {}

    def drop_weights(self, weights: Weights) -> Weights:
        """Returns what the loop uses in training in place of `loop_weights`.

        Some entries of matrices may be dropped, the same ones at all time steps.

        Args:
            weights: Of `loop_weights`.
        """
        return weights

    def call(
        self, inputs: tf.Tensor, states: States, training: bool = False
    ) -> tuple[tf.Tensor, States]:
        """Runs one step from raw inputs `[B, D]`, as `keras.layers.RNN` expects."""
        del training
        return self.step(
            self.project_inputs(inputs), list(states), self.loop_weights(), tf.matmul
        )

    def get_initial_state(self, batch_size: int | tf.Tensor | None = None) -> States:
        """Returns zeros, one `[batch_size, size]` for each entry of `state_size`."""
        return [
            tf.zeros((batch_size, size), dtype=self.compute_dtype)
            for size in self.state_size
        ]

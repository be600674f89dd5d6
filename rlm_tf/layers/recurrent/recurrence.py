"""The recurrent loop, with batched weight gradients, for any `RecurrentCell.step`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from rlm_tf.layers.recurrent.backward_step import (
    BackwardStep,
    backward_step,
    name_of,
    position_of,
)
from rlm_tf.layers.recurrent.recurrent_cell import States, Step, Weights

JIT_VARIABLE = "RLM_JIT_LOOP"


class Recurrence:
    """Runs a step function over the time axis, and differentiates it by hand.

    Forward, the loop stores every state and the result of every `product` of the step.
    Backward, each step is evaluated again from those (so only its element-wise part is
    repeated), and the two sides of each product's weight gradient, its left factor and
    the gradient of its result, are stored; after the loop one matrix product per weight
    turns them into the gradient. Autodiff of the forward loop would instead do one thin
    product per time step and add up T gradients of the size of the weight.

    Instances hold compiled functions: keep one per layer.

    Args:
        step: The step of a `RecurrentCell`.
        jit_loop: Whether XLA compiles the two loops. `"auto"` compiles when a graph is
            traced with known sizes of the inputs. XLA compiles once for each size, so
            with sizes that vary freely (a served model, eager calls) it does not pay.
            Nor does it in programs of a few steps: the environment variable
            `RLM_JIT_LOOP=0` switches it off where it would be automatic.
    """

    def __init__(self, step: Step, jit_loop: bool | str = "auto") -> None:
        self._step = step
        self._jit_loop = jit_loop
        self._functions = {
            jit: (_compiled(self._forward, jit), _compiled(self._backward, jit))
            for jit in (False, True)
        }

    def __call__(
        self, inputs: tf.Tensor, states: States, weights: Weights
    ) -> tuple[tf.Tensor, States]:
        """Runs the loop.

        Args:
            inputs: `[T, B, P]`, time first, T >= 1.
            states: Initial states, each `[B, S]`.
            weights: Passed on to the step.

        Returns:
            Outputs `[T, B, H]` and the final states, differentiable with respect to
            `inputs`, `states` and `weights`.
        """
        jit = self._jit_loop
        if jit == "auto":
            jit = (
                not tf.executing_eagerly()
                and inputs.shape.is_fully_defined()
                and os.environ.get(JIT_VARIABLE, "1") != "0"
            )
        forward, backward = self._functions[bool(jit)]
        names = list(weights)

        def unpack(arguments: Sequence[tf.Tensor]) -> tuple[tf.Tensor, States, Weights]:
            # Without the stops an open tape would record the loops as well.
            inputs, *rest = [tf.stop_gradient(argument) for argument in arguments]
            first, values = rest[: len(states)], rest[len(states) :]
            return inputs, first, dict(zip(names, values, strict=True))

        @tf.custom_gradient
        def run(*arguments: tf.Tensor) -> Any:
            inputs, first, named = unpack(arguments)
            outputs, stored_states, products = forward(inputs, first, named)

            # The arguments are among the sources so that a tape that asks for second
            # derivatives gets an error; it would take them for constants otherwise.
            @tf.custom_gradient
            def run_back(*sources: tf.Tensor) -> Any:
                d_outputs, *d_final = map(tf.stop_gradient, sources[len(arguments) :])
                d_inputs, d_first, d_weights = backward(
                    inputs, first, named, stored_states, products, d_outputs, d_final
                )
                gradients = [d_inputs, *d_first, *(d_weights[name] for name in names)]
                return gradients, _no_second_derivative

            def gradient(*d_results: tf.Tensor) -> list[tf.Tensor]:
                return run_back(*arguments, *d_results)

            return (outputs, *(stored[-1] for stored in stored_states)), gradient

        outputs, *final = run(inputs, *states, *(weights[name] for name in names))
        return outputs, final

    # === Forward ===

    def _forward(
        self, inputs: tf.Tensor, states: States, weights: Weights
    ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
        """Returns outputs, states and products, all `[T, B, ...]`."""
        # The first step runs outside of the loop: it shows which tensors a step makes.
        results, output_is_state = self._forward_step(inputs[0], states, weights)
        steps = inputs.shape[0] or tf.shape(inputs)[0]
        arrays = [_array(result, steps).write(0, result) for result in results]
        num_states = len(states)

        def body(t: tf.Tensor, states: States, arrays: list[tf.TensorArray]) -> Any:
            results, _ = self._forward_step(inputs[t], states, weights)
            arrays = [a.write(t, r) for a, r in zip(arrays, results, strict=True)]
            return t + 1, results[:num_states], arrays

        _, _, arrays = tf.while_loop(
            lambda t, *_: t < steps,
            body,
            (tf.constant(1), results[:num_states], arrays),
            maximum_iterations=steps - 1,
            parallel_iterations=1,
        )
        stacks = [array.stack() for array in arrays]
        stored_states, others = stacks[:num_states], stacks[num_states:]
        if output_is_state is None:
            return others[0], stored_states, others[1:]
        return stored_states[output_is_state], stored_states, others

    def _forward_step(
        self, inputs_t: tf.Tensor, states: States, weights: Weights
    ) -> tuple[list[tf.Tensor], int | None]:
        """Returns `[*states, output unless it is a state, *products]`, and which."""
        products: list[tf.Tensor] = []

        def product(x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
            name_of(weight, weights)
            products.append(tf.matmul(x, weight))
            return products[-1]

        output, new_states = self._step(inputs_t, list(states), weights, product)
        output_is_state = position_of(output, new_states)
        outputs = [output] if output_is_state is None else []
        return [*new_states, *outputs, *products], output_is_state

    # === Backward ===

    def _backward(
        self,
        inputs: tf.Tensor,
        first: States,
        weights: Weights,
        stored_states: list[tf.Tensor],
        products: list[tf.Tensor],
        d_outputs: tf.Tensor,
        d_final: list[tf.Tensor],
    ) -> tuple[tf.Tensor, list[tf.Tensor], Weights]:
        """Returns the gradients of inputs, initial states and weights."""
        previous = [
            tf.concat([initial[None], stored[:-1]], axis=0)
            for initial, stored in zip(first, stored_states, strict=True)
        ]
        steps = inputs.shape[0] or tf.shape(inputs)[0]

        def step_back(t: Any, d_states: States) -> BackwardStep:
            return backward_step(
                self._step,
                inputs[t],
                [stored[t] for stored in previous],
                weights,
                [stored[t] for stored in products],
                d_outputs[t],
                d_states,
            )

        last = step_back(steps - 1, d_final)
        arrays = [_array(s, steps).write(steps - 1, s) for s in last.sequences]
        sums = [tf.cast(d, _sum_dtype(d)) for d in last.d_weights.values()]

        def body(
            t: tf.Tensor,
            d_states: States,
            sums: list[tf.Tensor],
            arrays: list[tf.TensorArray],
        ) -> Any:
            step = step_back(t, d_states)
            arrays = [
                a.write(t, s) for a, s in zip(arrays, step.sequences, strict=True)
            ]
            sums = [
                total + tf.cast(d, total.dtype)
                for total, d in zip(sums, step.d_weights.values(), strict=True)
            ]
            return t - 1, step.d_states, sums, arrays

        _, d_first, sums, arrays = tf.while_loop(
            lambda t, *_: t >= 0,
            body,
            (tf.convert_to_tensor(steps - 2), last.d_states, sums, arrays),
            maximum_iterations=steps - 1,
            parallel_iterations=1,
        )
        stacks = [array.stack() for array in arrays]

        d_weights = {
            name: tf.cast(total, weights[name].dtype)
            for name, total in zip(last.d_weights, sums, strict=True)
        }
        for name, left, right in last.uses:
            factor = previous[left.position] if left.is_state else stacks[left.position]
            d_weight = tf.matmul(_rows(factor), _rows(stacks[right]), transpose_a=True)
            d_weights[name] = d_weights.get(name, 0.0) + d_weight
        for name, weight in weights.items():
            d_weights.setdefault(name, tf.zeros_like(weight))
        return stacks[0], d_first, d_weights


def _no_second_derivative(*_: tf.Tensor) -> Any:
    raise NotImplementedError(
        "Recurrence: second derivatives of the fast loop are not implemented; run the "
        "cell in keras.layers.RNN for them."
    )


def _compiled(function: Callable[..., Any], jit: bool) -> Callable[..., Any]:
    compiled = tf.function(function, jit_compile=jit or None, autograph=False)
    # TensorFlow counts together what the loops of all layers and models trace, which is
    # once for each size of a window, as meant, and would warn of it.
    compiled._omit_frequent_tracing_warning = True
    return compiled


def _array(element: tf.Tensor, steps: int | tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(element.dtype, size=steps, element_shape=element.shape)


def _rows(sequence: tf.Tensor) -> tf.Tensor:
    return tf.reshape(sequence, [-1, sequence.shape[-1]])


def _sum_dtype(tensor: tf.Tensor) -> tf.DType:
    """Sums over time of half-precision gradients are kept in single precision."""
    return tensor.dtype if tensor.dtype == tf.float64 else tf.float32

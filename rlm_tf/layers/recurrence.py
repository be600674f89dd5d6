"""The recurrent loop, with batched weight gradients, for any `RecurrentCell.step`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.layers.recurrent_cell import Product, States

Weights = dict[str, tf.Tensor]
Step = Callable[[tf.Tensor, States, Weights, Product], tuple[tf.Tensor, States]]


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
        jit_loop: Whether XLA compiles the two loops. `"auto"` compiles when the sizes
            of the inputs are known while the graph is traced. XLA compiles once for
            each size, so with sizes that vary freely (a served model) it does not pay.
    """

    def __init__(self, step: Step, jit_loop: bool | str = "auto") -> None:
        self._step = step
        self._jit_loop = jit_loop
        self._functions = {
            jit: (
                tf.function(self._forward, jit_compile=jit or None, autograph=False),
                tf.function(self._backward, jit_compile=jit or None, autograph=False),
            )
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
            jit = inputs.shape.is_fully_defined()
        forward, backward = self._functions[bool(jit)]
        names = list(weights)

        @tf.custom_gradient
        def run(inputs: tf.Tensor, *rest: tf.Tensor) -> Any:
            # Without this an open tape would record the loops as well.
            inputs, *rest = [tf.stop_gradient(tensor) for tensor in (inputs, *rest)]
            first, values = list(rest[: len(states)]), rest[len(states) :]
            named = dict(zip(names, values, strict=True))
            outputs, stored_states, products = forward(inputs, first, named)

            @tf.custom_gradient
            def run_back(d_outputs: tf.Tensor, *d_final: tf.Tensor) -> Any:
                d_inputs, d_first, d_weights = backward(
                    inputs,
                    first,
                    named,
                    stored_states,
                    products,
                    tf.stop_gradient(d_outputs),
                    [tf.stop_gradient(d) for d in d_final],
                )
                gradients = [d_inputs, *d_first, *(d_weights[name] for name in names)]
                return gradients, _no_second_derivative

            return (outputs, *(stored[-1] for stored in stored_states)), run_back

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
            products.append(tf.matmul(x, weight))
            return products[-1]

        output, new_states = self._step(inputs_t, list(states), weights, product)
        output_is_state = _position(output, new_states)
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

        def step_back(t: Any, d_states: States) -> _BackwardStep:
            return _backward_step(
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
            (tf.constant(steps - 2), last.d_states, sums, arrays),
            maximum_iterations=steps - 1,
            parallel_iterations=1,
        )
        stacks = [array.stack() for array in arrays]

        d_weights = {
            name: tf.cast(total, weights[name].dtype)
            for name, total in zip(last.d_weights, sums, strict=True)
        }
        for name, left, right in last.uses:
            factor = previous[left.index] if left.is_state else stacks[left.index]
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


class _Factor(NamedTuple):
    """Where the left factor of a product is: in the states, or in the sequences."""

    is_state: bool
    index: int


class _BackwardStep(NamedTuple):
    """Gradients of one time step.

    Attributes:
        d_states: Gradients of the states before the step.
        d_weights: Gradients of the weights that are used other than in a product.
        sequences: What the loop must stack over time: the gradient of the inputs first,
            then left factors and gradients of results of the products.
        uses: For each product the name of the weight, its left factor and the position
            of the gradient of its result in `sequences`.
    """

    d_states: list[tf.Tensor]
    d_weights: Weights
    sequences: list[tf.Tensor]
    uses: list[tuple[str, _Factor, int]]


def _backward_step(
    step: Step,
    inputs_t: tf.Tensor,
    states: States,
    weights: Weights,
    products: list[tf.Tensor],
    d_output: tf.Tensor,
    d_new_states: list[tf.Tensor],
) -> _BackwardStep:
    used: list[tuple[str, tf.Tensor]] = []
    d_products = [tf.zeros_like(result) for result in products]

    def product(x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        k = len(used)
        used.append((_name_of(weight, weights), x))

        @tf.custom_gradient
        def stored_product(x: tf.Tensor) -> Any:
            def gradient(d_result: tf.Tensor) -> tf.Tensor:
                d_products[k] = d_result
                return tf.matmul(d_result, weight, transpose_b=True)

            return tf.identity(products[k]), gradient

        return stored_product(x)

    sources = [inputs_t, *states, *weights.values()]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        output, new_states = step(inputs_t, list(states), weights, product)
    gradients = tape.gradient(
        [output, *new_states], sources, output_gradients=[d_output, *d_new_states]
    )

    split = 1 + len(states)
    d_inputs, *d_states = [
        tf.zeros_like(source) if d is None else d
        for source, d in zip(sources[:split], gradients[:split], strict=True)
    ]
    d_weights = {
        name: d
        for name, d in zip(weights, gradients[split:], strict=True)
        if d is not None
    }
    sequences = [d_inputs]
    uses = []
    for (name, x), d_product in zip(used, d_products, strict=True):
        state = _position(x, states)
        if state is None:
            left = _Factor(False, _append_once(x, sequences))
        else:
            left = _Factor(True, state)
        uses.append((name, left, _append_once(d_product, sequences)))
    return _BackwardStep(d_states, d_weights, sequences, uses)


def _name_of(weight: tf.Tensor, weights: Weights) -> str:
    for name, candidate in weights.items():
        if candidate is weight:
            return name
    raise ValueError(
        "Recurrence: the second argument of `product` must be one of the step's "
        f"`weights` itself ({', '.join(weights)}), found another tensor of shape "
        f"{weight.shape}."
    )


def _position(tensor: tf.Tensor, tensors: list[tf.Tensor]) -> int | None:
    return next((i for i, other in enumerate(tensors) if other is tensor), None)


def _append_once(tensor: tf.Tensor, tensors: list[tf.Tensor]) -> int:
    """Returns the position of `tensor` in `tensors`, where it is put if absent."""
    position = _position(tensor, tensors)
    if position is not None:
        return position
    tensors.append(tensor)
    return len(tensors) - 1


def _array(element: tf.Tensor, steps: int | tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(element.dtype, size=steps, element_shape=element.shape)


def _rows(sequence: tf.Tensor) -> tf.Tensor:
    return tf.reshape(sequence, [-1, sequence.shape[-1]])


def _sum_dtype(tensor: tf.Tensor) -> tf.DType:
    """Sums over time of half-precision gradients are kept in single precision."""
    return tensor.dtype if tensor.dtype == tf.float64 else tf.float32

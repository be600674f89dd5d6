"""One step of the backward pass through a recurrent loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.layers.recurrent.recurrent_cell import States, Step, Weights


class Factor(NamedTuple):
    """Where the left factor of a product is: in the states, or in the sequences."""

    is_state: bool
    position: int


class BackwardStep(NamedTuple):
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
    uses: list[tuple[str, Factor, int]]


def backward_step(
    step: Step,
    inputs_t: tf.Tensor,
    states: States,
    weights: Weights,
    products: list[tf.Tensor],
    d_output: tf.Tensor,
    d_new_states: list[tf.Tensor],
) -> BackwardStep:
    """Differentiates one step, given the results of its products.

    Args:
        step: The step of a `RecurrentCell`.
        inputs_t: Its inputs `[B, P]`.
        states: The states `[B, S]` before it.
        weights: Its weights.
        products: The results of its calls of `product` in the forward pass, in order.
        d_output: Gradient of its output.
        d_new_states: Gradients of the states after it.

    Returns:
        The gradients; those of the products' weights as two factors each, which the
        loop stacks over time and multiplies at once.
    """
    used: list[tuple[str, tf.Tensor]] = []
    d_products = [tf.zeros_like(result) for result in products]

    def product(x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        k = len(used)
        used.append((name_of(weight, weights), x))

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
        state = position_of(x, states)
        if state is None:
            left = Factor(False, _append_once(x, sequences))
        else:
            left = Factor(True, state)
        uses.append((name, left, _append_once(d_product, sequences)))
    return BackwardStep(d_states, d_weights, sequences, uses)


def name_of(weight: tf.Tensor, weights: Weights) -> str:
    """Returns the name of a weight that a step passed to `product`.

    Raises:
        ValueError: If it is none of the step's weights.
    """
    for name, candidate in weights.items():
        if candidate is weight:
            return name
    raise ValueError(
        "Recurrence: the second argument of `product` must be one of the step's "
        f"`weights` itself ({', '.join(weights)}), found another tensor of shape "
        f"{weight.shape}."
    )


def position_of(tensor: tf.Tensor, tensors: list[tf.Tensor]) -> int | None:
    """Returns where in `tensors` the very tensor is, or None."""
    return next((i for i, other in enumerate(tensors) if other is tensor), None)


def _append_once(tensor: tf.Tensor, tensors: list[tf.Tensor]) -> int:
    """Returns the position of `tensor` in `tensors`, where it is put if absent."""
    position = position_of(tensor, tensors)
    if position is not None:
        return position
    tensors.append(tensor)
    return len(tensors) - 1

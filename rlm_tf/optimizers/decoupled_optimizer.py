"""Several optimisers in one, each for a part of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import keras
import tensorflow as tf
from keras.optimizers import Optimizer

from rlm_tf import gradients as gradient_lists
from rlm_tf.nested_config import NestedConfig
from rlm_tf.replicas import num_replicas
from rlm_tf.typing import Gradient

Parts: TypeAlias = Mapping[str, Sequence[Any]]


@keras.saving.register_keras_serializable("rlm_tf")
class DecoupledOptimizer(NestedConfig, Optimizer):
    """Routes the gradient of each variable to the optimiser of its part.

    Which variables a part has is the model's to say: an `ObjectiveModel` does in
    `parts`, for other models call `route`. Every part keeps its own count of
    steps, moments, schedule and learning rate. `keras.optimizers.MultiOptimizer` finds
    parts by patterns of names and has neither rates that callbacks can move nor
    clipping.

    Keras' callbacks find the parts in `optimizers`, as those of its `MultiOptimizer`:
    `ReduceLROnPlateau` lowers the rate of each, `SwapEMAWeights` swaps the weights of
    those with `use_ema`, and logs have a rate for each different name of an optimiser.
    `LearningRateScheduler` asks its function for each part, of that part's rate: one
    that multiplies the rate keeps the ratios, one that does not look at it gives all
    parts the same. Within a `LossScaleOptimizer` the two that set rates see only
    `learning_rate`, so that all rates keep their ratios whatever the function is.

    Args:
        optimizers: An optimiser for each part, by the part's name.
        clip_norms: The gradient of a part is clipped to this global norm, after the sum
            over replicas, by the part's name; parts that are not named are not clipped.
        name: Of the optimiser.

    Attributes:
        by_part: What was given as `optimizers`, to be read only.

    Raises:
        ValueError: If there is no part, an optimiser is none, is one twice or scales
            losses, or a clip norm is not positive or names no part.
    """

    def __init__(
        self,
        optimizers: Mapping[str, Optimizer],
        clip_norms: Mapping[str, float] | None = None,
        *,
        name: str = "decoupled_optimizer",
    ) -> None:
        # A function has no variable: the parts have theirs.
        super().__init__(learning_rate=lambda: 0.0, name=name)
        _check_optimizers(optimizers)
        # No dictionary, which Keras would write to files once more.
        self.by_part: Mapping[str, Optimizer] = MappingProxyType(dict(optimizers))
        # Checkpoints name the parts so.
        tracked = tf.__internal__.tracking.wrap(dict(optimizers))
        self._track_trackable(tracked, "optimizers")
        self.clip_norms = dict(clip_norms or {})
        for part, norm in self.clip_norms.items():
            if part not in self.by_part or not norm > 0:
                raise ValueError(
                    "DecoupledOptimizer: `clip_norms` must be positive and of parts "
                    f"{list(self.by_part)}, found {norm!r} for {part!r}."
                )
        self._asked: Parts | Callable[[], Parts] | None = None
        self._routes: dict[Any, str] | None = None

    # === Parts ===

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimisers of all parts, where callbacks and files of Keras look."""
        return list(self.by_part.values())

    def route(self, parts: Parts | Callable[[], Parts]) -> None:
        """Says which variables belong to each part; must precede `build`.

        Args:
            parts: Variables, by the part's name; or a function that returns them, which
                is called when the optimiser is built.
        """
        self._asked, self._routes = parts, None

    def _make_routes(self) -> dict[Any, str]:
        if self._asked is None:
            raise ValueError(
                "DecoupledOptimizer: nobody has said which variables belong to "
                f"{sorted(self.by_part)}: an ObjectiveModel does by its `parts`; "
                "for another model call `optimizer.route({part: variables})`."
            )
        parts = self._asked() if callable(self._asked) else self._asked
        if set(parts) != set(self.by_part):
            raise ValueError(
                f"DecoupledOptimizer: has optimisers for {sorted(self.by_part)}, "
                f"the model has the parts {sorted(parts)}; they must be the same."
            )
        routes: dict[Any, str] = {}
        for part, variables in parts.items():
            for variable in variables:
                if routes.setdefault(self._var_key(variable), part) != part:
                    raise ValueError(
                        "DecoupledOptimizer: a variable belongs to one part, found "
                        f"`{variable.path}` in `{part}` and in "
                        f"`{routes[self._var_key(variable)]}`."
                    )
        return routes

    def part_of(self, variable: Any) -> str:
        """Returns the name of a variable's part.

        Raises:
            ValueError: If it has none, if two parts share a variable, or if there are
                other parts than optimisers.
        """
        if self._routes is None:
            self._routes = self._make_routes()
        part = self._routes.get(self._var_key(variable))
        if part is None:
            raise ValueError(
                f"DecoupledOptimizer: `{variable.path}` belongs to none of the parts "
                f"{sorted(self.by_part)}; every trainable variable must."
            )
        return part

    def _split(self, items: Sequence[Any], variables: Sequence[Any]) -> dict[str, list]:
        split: dict[str, list] = {part: [] for part in self.by_part}
        for item, variable in zip(items, variables, strict=True):
            split[self.part_of(variable)].append(item)
        return split

    # === Steps ===

    def build(self, variables: Sequence[Any]) -> None:
        """Builds the optimiser of every part."""
        if self.built:
            return
        for part, own in self._split(variables, variables).items():
            self.by_part[part].build(own)
        super().build(list(variables))

    def apply(self, grads: Sequence[Gradient], trainable_variables: Any = None) -> None:
        """Takes a step with each part; gradients are summed over replicas."""
        if trainable_variables is None:
            trainable_variables = self._trainable_variables
        variables = list(trainable_variables)
        if not self.built:
            self.build(variables)
        gradients = self._split(grads, variables)
        for part, own in self._split(variables, variables).items():
            # A part without a gradient, in a phase that trains the others, rests.
            if any(gradient is not None for gradient in gradients[part]):
                self.by_part[part].apply(self._clipped(part, gradients[part]), own)
        self._iterations.assign_add(1)

    def _clipped(self, part: str, gradients: list[Gradient]) -> list[Gradient]:
        if part not in self.clip_norms:
            return gradients
        merged = gradient_lists.deduplicate_all(gradients)
        summed = gradient_lists.sum_over_replicas(merged)
        clipped = gradient_lists.clip(summed, self.clip_norms[part])
        # The part's optimiser is going to add up what every replica passes.
        return gradient_lists.scale(clipped, 1.0 / num_replicas())

    def finalize_variable_values(self, var_list: Sequence[Any]) -> None:
        for part, own in self._split(var_list, var_list).items():
            self.by_part[part].finalize_variable_values(own)

    # === Learning rates ===

    @property
    def learning_rates(self) -> dict[str, float]:
        """Each part's learning rate, or what its schedule gives for its next step."""
        return {
            part: float(keras.ops.convert_to_numpy(optimizer.learning_rate))
            for part, optimizer in self.by_part.items()
        }

    def set_learning_rate(self, part: str, value: float) -> None:
        """Sets the learning rate of one part."""
        self.by_part[part].learning_rate = value

    @property
    def learning_rate(self) -> Any:
        """The first part's learning rate.

        Setting it keeps the ratios: every other rate is multiplied by what the first
        is. So callbacks that lower a model's rate lower that of all parts.
        """
        return next(iter(self.optimizers)).learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        rates = self.learning_rates
        first = next(iter(rates.values()))
        if not first:
            raise ValueError(
                "DecoupledOptimizer: rates are set in proportion to the first part's, "
                "which is 0; use `set_learning_rate(part, value)`."
            )
        for part, rate in rates.items():
            # The first gets the value itself, not what rounding leaves of it.
            self.set_learning_rate(
                part, value if rate == first else rate * (value / first)
            )

    # === Files ===

    @property
    def variables(self) -> list[keras.Variable]:
        return [
            *self._variables,
            *(v for inner in self.optimizers for v in inner.variables),
        ]

    def save_own_variables(self, store: Any) -> None:
        # Keras finds the optimisers of the parts and saves what is theirs.
        store["iterations"] = self._iterations.numpy()

    def load_own_variables(self, store: Any) -> None:
        self._iterations.assign(store["iterations"])

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "optimizers": {
                part: keras.saving.serialize_keras_object(optimizer)
                for part, optimizer in self.by_part.items()
            },
            "clip_norms": dict(self.clip_norms),
        }


def decoupled_part_of(optimizer: Any) -> DecoupledOptimizer | None:
    """Returns the decoupled optimiser that a compiled model has, or None.

    That of a model in half precision is within one that scales losses.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return inner if isinstance(inner, DecoupledOptimizer) else None


def single_optimizers(optimizer: Any) -> dict[str, Optimizer]:
    """Returns the optimisers that hold learning rates and moments, by their part.

    One that is not decoupled is that of the part "".
    """
    decoupled = decoupled_part_of(optimizer)
    if decoupled is None:
        return {"": getattr(optimizer, "inner_optimizer", optimizer)}
    return dict(decoupled.by_part)


def _check_optimizers(optimizers: Any) -> None:
    if not isinstance(optimizers, Mapping) or not optimizers:
        raise ValueError(
            "DecoupledOptimizer: `optimizers` must be a dictionary of optimisers by "
            f"the names of parts, found {optimizers!r}."
        )
    for part, optimizer in optimizers.items():
        refused = keras.optimizers.LossScaleOptimizer | DecoupledOptimizer
        if not isinstance(optimizer, Optimizer) or isinstance(optimizer, refused):
            raise ValueError(
                f"DecoupledOptimizer: the optimiser of `{part}` must be a plain Keras "
                f"optimiser, found {type(optimizer).__name__}."
            )
    if len({id(optimizer) for optimizer in optimizers.values()}) < len(optimizers):
        raise ValueError(
            "DecoupledOptimizer: every part needs an optimiser of its own, found one "
            "for several."
        )

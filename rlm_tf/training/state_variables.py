"""Every variable that a training step may change, found by name."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.workers import Workers

_REPLICA = re.compile(r"/replica_(\d+)$")
_OWNERS = (
    keras.Layer,
    keras.Loss,
    keras.Metric,
    keras.optimizers.Optimizer,
    keras.random.SeedGenerator,
    tf.Module,
)
_LIBRARIES = frozenset({"keras", "numpy", "tensorflow", "tf_keras", "wrapt"})
# Bookkeeping of Keras and TensorFlow: it repeats what other attributes hold.
_BOOKKEEPING = ("_self_", "_obj_reference", "_tracker", "_inbound", "_outbound")


def state_variables(model: keras.Model) -> dict[str, tf.Variable]:
    """Returns all variables reachable from a model's attributes, keyed by their path.

    These are weights, optimiser slots and counters, metric state, the state of seed
    generators (which neither `.keras` files nor `tf.train.Checkpoint` keep) and plain
    `tf.Variable`s such as carried recurrent states. The search follows the attributes
    of layers, metrics, optimisers, losses, modules and objects of classes defined
    outside Keras, TensorFlow and the standard library, and lists, tuples and
    dictionaries. It does not look into closures, nor at the global generators of Keras
    and TensorFlow. The weights of `frozen_models`, which stay as they are, are left out
    (`fixed_weights`).

    Under a strategy with several replicas, a variable of which every replica has its
    own (`ON_READ`) appears once for each replica of this process, with the replica's
    number among those of all processes.
    """
    found: dict[str, tf.Variable] = {}
    seen = {id(weight.value) for weight in fixed_weights(model)}
    queue: deque[tuple[str, Any]] = deque([("", model)])
    # Breadth first: of several paths to a variable the shortest names it.
    while queue:
        path, item = queue.popleft()
        if isinstance(item, keras.Variable):
            item = item.value
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, tf.Variable):
            found[path] = item
        else:
            for name, child in _children(item):
                queue.append((f"{path}/{name}" if path else str(name), child))
    return dict(_split_replicas(found, model.distribute_strategy))


def replica_of(name: str) -> int | None:
    """Returns the number of the replica whose own variable has this name, or None."""
    found = _REPLICA.search(name)
    return int(found[1]) if found else None


def fixed_weights(model: keras.Model) -> list[keras.Variable]:
    """Returns the weights of a model's `frozen_models`, which stay as they are.

    Tables of n-grams are larger than the language model at times.
    """
    frozen_models = getattr(model, "frozen_models", ())
    return [weight for frozen in frozen_models for weight in frozen.weights]


def fixed_digest(model: keras.Model) -> str:
    """Returns SHA-256 of dtypes, shapes and values of the `fixed_weights`."""
    digest = hashlib.sha256()
    for weight in fixed_weights(model):
        value = np.atleast_1d(weight.value.numpy())
        digest.update(f"{weight.dtype} {value.shape}".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def read(variables: Mapping[str, tf.Variable]) -> dict[str, np.ndarray]:
    """Returns the variables' values."""
    return {name: np.asarray(v.numpy()) for name, v in variables.items()}


def write(
    variables: Mapping[str, tf.Variable], arrays: Mapping[str, np.ndarray], origin: str
) -> None:
    """Assigns arrays to the variables of the same names.

    Args:
        variables: As `state_variables` returns them.
        arrays: One array a variable, no more and no fewer.
        origin: Where the arrays come from; error messages name it.

    Raises:
        ValueError: If names, shapes or dtypes differ.
    """
    missing = sorted(set(arrays) - set(variables))
    unexpected = sorted(set(variables) - set(arrays))
    if missing or unexpected:
        raise ValueError(
            f"{origin} does not fit this model: only the checkpoint has {missing[:5]} "
            f"({len(missing)} in all), only the model has {unexpected[:5]} "
            f"({len(unexpected)} in all)."
        )
    for name, variable in variables.items():
        value = arrays[name]
        if not variable.shape.is_compatible_with(value.shape):
            raise ValueError(
                f"{origin} does not fit this model: `{name}` has shape "
                f"{list(value.shape)}, the model expects {variable.shape.as_list()}."
            )
        if tf.as_dtype(value.dtype) != variable.dtype:
            raise ValueError(
                f"{origin} does not fit this model: `{name}` is "
                f"{tf.as_dtype(value.dtype).name}, the model expects "
                f"{variable.dtype.name}."
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])


def first_not_finite(model: keras.Model) -> str | None:
    """Returns the path of a trainable weight that is not finite, or None."""
    for variable in model.trainable_variables:
        value = variable.value.numpy().astype(np.float32, copy=False)
        if not np.all(np.isfinite(value)):
            return variable.path
    return None


def _children(item: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(item, Mapping):
        return [(k, v) for k, v in item.items() if isinstance(k, str | int)]
    if isinstance(item, list | tuple):
        return enumerate(item)
    if isinstance(item, _OWNERS) or _is_user_object(item):
        return [
            (name, child)
            for name, child in vars(item).items()
            if not name.startswith(_BOOKKEEPING)
        ]
    return ()


def _is_user_object(item: Any) -> bool:
    if isinstance(item, type) or not hasattr(item, "__dict__"):
        return False
    package = type(item).__module__.partition(".")[0]
    return package not in _LIBRARIES and package not in sys.stdlib_module_names


def _split_replicas(
    variables: Mapping[str, tf.Variable], strategy: tf.distribute.Strategy
) -> Iterator[tuple[str, tf.Variable]]:
    workers = Workers(strategy)
    for name, variable in variables.items():
        own = variable.synchronization == tf.VariableSynchronization.ON_READ
        distributed = isinstance(variable, tf.distribute.DistributedValues)
        if workers.replicas == 1 or not (own and distributed):
            yield name, variable
            continue
        parts = strategy.experimental_local_results(variable)
        for index, part in zip(workers.local_replicas, parts, strict=True):
            yield f"{name}/replica_{index}", part

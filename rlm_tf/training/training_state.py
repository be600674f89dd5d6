"""The state of a model and of callbacks as JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.training.callback_state import (
    get_callback_state,
    join_arrays,
    set_callback_state,
    split_arrays,
)
from rlm_tf.training.checkpoint import Checkpoint
from rlm_tf.training.state_variables import (
    read,
    replica_of,
    state_variables,
    write,
)
from rlm_tf.workers import Workers

_VARIABLES = "variables/"


def capture(
    model: keras.Model, callbacks: Sequence[keras.callbacks.Callback]
) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Returns the callbacks' states without their arrays, and all arrays by name."""
    arrays = {
        _VARIABLES + name: array for name, array in read(state_variables(model)).items()
    }
    states = [
        split_arrays(get_callback_state(callback), f"callbacks/{index}", arrays)
        for index, callback in enumerate(callbacks)
    ]
    return states, arrays


def restore(
    model: keras.Model,
    callbacks: Sequence[keras.callbacks.Callback],
    checkpoint: Checkpoint,
    example: Callable[[], Any],
) -> None:
    """Puts back what `capture` returned.

    Args:
        model: The model.
        callbacks: The callbacks, in the same order.
        checkpoint: Its `state["callbacks"]` and its arrays are used.
        example: Returns a batch, in case the model has to be built first.

    Raises:
        ValueError: If the model has other variables than the checkpoint, or a callback
            cannot use the state that is there.
    """
    workers = Workers(model.distribute_strategy)
    arrays = {
        name.removeprefix(_VARIABLES): array
        for name, array in checkpoint.arrays.items()
        if name.startswith(_VARIABLES) and not _is_of_others(name, workers)
    }
    _create_variables(model, set(arrays), example)
    variables = state_variables(model)
    if checkpoint.format < 1:
        arrays |= {name: v.numpy() for name, v in variables.items() if _is_phase(name)}
    write(variables, arrays, checkpoint.origin)
    if hasattr(model, "follow_phase"):
        model.follow_phase()
    states = checkpoint.state["callbacks"]
    for callback, state in zip(callbacks, states, strict=True):
        try:
            set_callback_state(callback, join_arrays(state, checkpoint.arrays))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{checkpoint.origin} holds another state of "
                f"{type(callback).__name__} than this version takes ({error!r}). Go on "
                "with the version that wrote it, or start anew."
            ) from error


def check_written_for(checkpoint: Checkpoint, expected: Mapping[str, Any]) -> None:
    """Raises ValueError unless a checkpoint is of a run like this one.

    Args:
        checkpoint: Its `state` is compared.
        expected: What this run would write under the same keys.
    """
    for key, found in expected.items():
        known = checkpoint.state.get(key)
        if known == found:
            continue
        if key == "restricted_models":
            difference = "with other restricted models (or by an older version)"
        else:
            difference = f"by another run: its {key} are {known}, here they are {found}"
        raise ValueError(
            f"ExactResume: {checkpoint.origin} was written {difference}. Use another "
            "directory, or start anew (resume=False; --noresume)."
        )


def _create_variables(
    model: keras.Model, names: set[str], example: Callable[[], Any]
) -> None:
    """Makes Keras create what it otherwise creates in the first step."""
    if model.built and not model.optimizer.built:
        with model.distribute_strategy.scope():
            model.optimizer.build(model.trainable_variables)
    if names - set(state_variables(model)):
        model.train_on_batch(*keras.utils.unpack_x_y_sample_weight(example()))


def _is_of_others(name: str, workers: Workers) -> bool:
    """Whether a name is of a variable of a replica in another process."""
    replica = replica_of(name)
    if replica is None or replica in workers.local_replicas:
        return False
    return replica < workers.replicas


def _is_phase(name: str) -> bool:
    return name.rpartition("/")[2] == "phase"

"""Which training a folder holds: of what documents, labels and settings."""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.data.labelled.document_batches import DocumentBatches
from rlm_tf.file_errors import naming
from rlm_tf.host_tensors import host_array
from rlm_tf.training.resumable_batches import ResumableBatches

_IDENTITY = "identity"


def claim_training(
    folder: pathlib.Path,
    model: keras.Model,
    data: ResumableBatches,
    everything: np.ndarray,
    **others: Any,
) -> None:
    """Makes a folder a training's own.

    Args:
        folder: It is made, too.
        model: What is trained, compiled.
        data: What it learns from.
        everything: int `[N, T]`, documents that it is asked of.
        **others: Numbers that it depends on.

    Raises:
        ValueError: If the folder is of another training.
    """
    own = _digest(model, data, everything, others)
    place = folder / _IDENTITY
    if place.exists():
        if place.read_text() != own:
            raise ValueError(
                f"{folder} holds a training of other documents, labels or settings; "
                "remove it, or name another folder."
            )
        return
    # A folder of an earlier version does not say.
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{_IDENTITY}.part"
    with naming(beside):
        beside.write_text(own)
        beside.replace(place)


def _digest(
    model: keras.Model,
    data: ResumableBatches,
    everything: np.ndarray,
    others: dict[str, Any],
) -> str:
    found = hashlib.sha256()

    def add(value: Any) -> None:
        if tf.is_tensor(value):
            value = host_array(value)
        if isinstance(value, np.ndarray):
            found.update(f"{value.dtype}{value.shape}".encode())
            found.update(np.ascontiguousarray(value).data)
        else:
            found.update(json.dumps(value, sort_keys=True, default=str).encode())

    assert isinstance(data.source, DocumentBatches)
    for part in (data.source, data.transform):
        for name, value in sorted(vars(part).items() if part is not None else ()):
            add(name)
            add(value)
    add(everything)
    add(others)
    add([[*weight.shape] for weight in model.weights])
    # Names are numbered as optimisers are made.
    add({**model.optimizer.get_config(), "name": ""})
    return found.hexdigest()

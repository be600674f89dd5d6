"""Writes a latent-variable model of sentences as a SavedModel."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.models import MonteCarloVAE
from rlm_tf.serving.latent_service import LatentService
from rlm_tf.serving.saved_model import (
    check_export_path,
    check_weights,
    write_saved_model,
)

_TOLERANCE, _HALF_TOLERANCE = 1e-4, 0.05


def export_latent_model(
    model: MonteCarloVAE,
    vocabulary: Vocabulary,
    path: str | os.PathLike[str],
    *,
    most_tokens: int = 35,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a SavedModel that answers `encode`, `decode`, `score`, `interpolate`.

    What they take and return is described in `LatentService`. The SavedModel holds the
    weights of the model and the vocabulary, and consists of operations of plain
    TensorFlow. It is compared with `model` before it takes its place.

    Args:
        model: Of sentences.
        vocabulary: The one that it was trained with.
        path: Directory to be made; parents are made too.
        most_tokens: Tokens of a sentence that are read, its end included.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: If there is something at `path` that may not be replaced.
        ValueError: If model and vocabulary do not belong together, or the SavedModel's
            numbers are not the model's, or a weight holds NaN or infinity.
    """
    for name, value, kind in (
        ("model", model, MonteCarloVAE),
        ("vocabulary", vocabulary, Vocabulary),
    ):
        if not isinstance(value, kind):
            raise ValueError(
                f"export_latent_model: `{name}` must be a {kind.__name__}, found "
                f"{type(value).__name__}."
            )
    check_integer("export_latent_model", "most_tokens", most_tokens, 1)
    check_export_path(path, overwrite)
    check_weights("export_latent_model", model.weights)
    service = LatentService(model, vocabulary, most_tokens)

    def check(written: pathlib.Path) -> None:
        _check_numbers(written, service)

    return write_saved_model(
        service, service.signatures(), path, check, service.requests(), overwrite
    )


def _check_numbers(directory: pathlib.Path, service: LatentService) -> None:
    """Raises ValueError unless the signatures answer as they did before."""
    signatures = tf.saved_model.load(str(directory)).signatures
    # Half precision rounds each product; only gross errors can be told from that.
    tolerance = _TOLERANCE if service.is_exact else _HALF_TOLERANCE
    texts = tf.constant(service.some_texts())
    asked = {"texts": texts, "num_samples": tf.constant(3), "seed": tf.constant(1)}
    for name in ("encode", "score"):
        expected = getattr(service, name).python_function(**asked)
        found = signatures[name](**asked)
        for key, values in expected.items():
            error = np.abs(found[key].numpy() - values.numpy())
            error = np.max(error / np.maximum(np.abs(values), 1.0), initial=0.0)
            if not error <= tolerance:
                raise ValueError(
                    f"export_latent_model: the SavedModel's `{key}` of `{name}` "
                    f"differs from the model's by up to {error:.3g} (relative); "
                    "nothing was written."
                )

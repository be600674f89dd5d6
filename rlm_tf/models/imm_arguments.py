"""Checks of what `InducedModelMatching` is given."""

from __future__ import annotations

import keras

from rlm_tf.restricted.restricted_model import RestrictedModel


def induced_names(count: int) -> list[str]:
    """Returns the names of the terms of so many restricted models."""
    if count < 1:
        raise ValueError(
            "InducedModelMatching: `restricted_model` must hold at least one "
            "restricted model, found an empty list."
        )
    return ["imm"] if count == 1 else [f"imm_{index}" for index in range(count)]


def shared_vocabulary_size(
    model: keras.Model, restricted_models: list[RestrictedModel]
) -> int:
    """Returns the one vocabulary size of all models that know theirs."""
    sizes = [getattr(model, "vocabulary_size", None)]
    for restricted in restricted_models:
        if restricted.vocabulary_size is None:
            raise ValueError(
                "InducedModelMatching: the restricted model "
                f"{type(restricted).__name__} has not been fitted; call its "
                "`fit(tokens, vocabulary_size)` first."
            )
        sizes.append(restricted.vocabulary_size)
    known = {size for size in sizes if size is not None}
    if len(known) != 1:
        raise ValueError(
            "InducedModelMatching: language model and restricted models must share one "
            f"vocabulary, found sizes {sorted(known)}."
        )
    return known.pop()


def check_options(every: int, gradient: str, variant: str) -> None:
    """Raises ValueError for an option that does not exist."""
    if every < 1:
        raise ValueError(
            f"InducedModelMatching: `every` must be at least 1, found {every}."
        )
    if gradient not in ("direct", "crosstalk"):
        raise ValueError(
            "InducedModelMatching: `gradient` must be 'direct' or 'crosstalk', found "
            f"{gradient!r}."
        )
    if variant not in ("paper", "authors"):
        raise ValueError(
            "InducedModelMatching: `variant` must be 'paper' or 'authors', found "
            f"{variant!r}."
        )

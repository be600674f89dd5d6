"""Checks of what `InducedModelMatching` is given."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.checks import check_integer
from rlm_tf.objective_model.term import check_coefficient
from rlm_tf.restricted.restricted_model import RestrictedModel


def check_model(model: Any) -> None:
    """Raises ValueError unless it is a Keras model."""
    if not isinstance(model, keras.Model):
        raise ValueError(
            "InducedModelMatching: `model` must be a Keras model, found "
            f"{type(model).__name__}."
        )


def own_or_inner(name: str, own: Any, model: keras.Model, otherwise: Any) -> Any:
    """Returns the wrapper's value of an option, or else the wrapped model's."""
    return getattr(model, name, otherwise) if own is None else own


def check_pairs(pairs: list[Any]) -> None:
    """Raises ValueError unless all are pairs (restricted model, coefficient)."""
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        if not (is_pair and isinstance(pair[0], RestrictedModel)):
            raise ValueError(
                "InducedModelMatching: `restricted_model` must be a RestrictedModel or "
                f"a list of pairs (RestrictedModel, coefficient), found {pair!r}."
            )
        check_coefficient("InducedModelMatching", "coefficient", pair[1])


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


def check_owner(contexts: Any, wrapper: keras.Model) -> None:
    """Raises ValueError if contexts are already in use by another wrapper."""
    owner = None if contexts.owner is None else contexts.owner()
    if owner is not None and owner is not wrapper:
        raise ValueError(
            "InducedModelMatching: `contexts` already belong to another wrapper, whose "
            "short contexts and banks they hold; make new ones for this one."
        )


def check_options(every: int, gradient: str, variant: str) -> None:
    """Raises ValueError for an option that does not exist."""
    check_integer("InducedModelMatching", "every", every, 1)
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

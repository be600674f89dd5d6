"""What induced model matching accepts around which model."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.checks import check_integer
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import check_coefficient
from rlm_tf.restricted.restricted_model import RestrictedModel


def check_pairs(pairs: list[Any]) -> None:
    """Raises ValueError unless these are restricted models and coefficients."""
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        if not (is_pair and isinstance(pair[0], RestrictedModel)):
            raise ValueError(
                "InducedModelMatching: `restricted_model` must be a RestrictedModel or "
                f"a list of pairs (RestrictedModel, coefficient), found {pair!r}."
            )
        check_coefficient("InducedModelMatching", "coefficient", pair[1])
    if not pairs:
        raise ValueError(
            "InducedModelMatching: `restricted_model` must hold at least one "
            "restricted model, found an empty list."
        )


def check_options(every: int, gradient: str, variant: str) -> None:
    """Raises ValueError for an unknown option."""
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


def check_terms(model: keras.Model) -> None:
    """Raises ValueError if the model trains on more than it gives to a wrapper."""
    if not isinstance(model, ObjectiveModel):
        return
    others = [spec.name for spec in model.term_specs if spec.name != "nll"]
    if others:
        raise ValueError(
            f"InducedModelMatching: {type(model).__name__} also trains on "
            f"{', '.join(others)}, which would be left out; make it without them, such "
            "as with penalties of 0."
        )

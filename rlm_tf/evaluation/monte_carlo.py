"""Evaluation with dropout, averaged over many masks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from rlm_tf.checks import check_integer
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell


class MonteCarloDropout:
    """Monte Carlo dropout: the mean of probabilities under many dropout masks.

        p(w_t | w_<t) = 1/N sum_n p(w_t | w_<t, masks n)

    Every sample passes over the whole stream with recurrent states of its own; state
    dropout draws a mask for each window.

    Args:
        samples: N; the published value is 200.
        rate_scale: What all dropout rates are multiplied by; Melis et al. (2020) try
            0.6, 0.7, 0.8 and 0.9 besides 1.
        seed: Of the masks.

    Raises:
        ValueError: If an argument is out of range; from `of`, if a rate would not stay
            below 1, or the model has no dropout.
    """

    def __init__(
        self, samples: int = 200, rate_scale: float = 1.0, seed: int = 0
    ) -> None:
        check_integer("MonteCarloDropout", "samples", samples, 1)
        if not 0 < rate_scale < np.inf:
            raise ValueError(
                "MonteCarloDropout: `rate_scale` must be positive and finite, found "
                f"{rate_scale}."
            )
        self.samples = samples
        self.rate_scale = rate_scale
        self.seed = seed

    @contextlib.contextmanager
    def of(self, model: keras.Model) -> Iterator[Callable[[], None]]:
        """Scales a model's dropout rates; in the end the model is as it was.

        That goes for seeds and for what layers with other training behaviour write,
        such as the moving statistics of batch normalisation.

        Yields:
            What seeds the masks anew, so that the same come again.
        """
        places = _places_of(model)
        if not places:
            raise ValueError(
                "MonteCarloDropout: the model has no dropout with a rate above 0."
            )
        rates = [getattr(layer, name) for layer, name in places]
        for rate in rates:
            if rate * self.rate_scale >= 1:
                raise ValueError(
                    f"MonteCarloDropout: `rate_scale` {self.rate_scale} makes a rate "
                    f"of {rate} reach 1."
                )
        # By identity: layers may share a generator.
        generators = {id(layer.seed_generator): layer for layer, _ in places}
        seeds = [layer.seed_generator.state for layer in generators.values()]
        variables = {id(v): v for v in [*model.non_trainable_variables, *seeds]}
        kept = [(v, v.numpy()) for v in variables.values()]

        def seed_masks() -> None:
            random = np.random.default_rng(self.seed)
            for state in seeds:
                seed = random.integers(2**31, size=state.shape)
                state.assign(seed.astype(state.dtype))

        try:
            for (layer, name), rate in zip(places, rates, strict=True):
                setattr(layer, name, rate * self.rate_scale)
            seed_masks()
            yield seed_masks
        finally:
            for (layer, name), rate in zip(places, rates, strict=True):
                setattr(layer, name, rate)
            for variable, value in kept:
                variable.assign(value)


def has_dropout(model: keras.Model) -> bool:
    """Returns whether a model has dropout that `MonteCarloDropout` can use."""
    return bool(_places_of(model))


def _places_of(model: keras.Model) -> list[tuple[Any, str]]:
    """Returns the layers with dropout and the names of their rates."""
    places: list[tuple[Any, str]] = []
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dropout) and layer.rate > 0:
            places.append((layer, "rate"))
        elif isinstance(layer, HiddenStateCell) and layer.recurrent_dropout > 0:
            places.append((layer, "recurrent_dropout"))
    return places

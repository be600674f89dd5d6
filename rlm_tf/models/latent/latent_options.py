"""Checks of what latent-variable models are told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras

from rlm_tf.checks import check_integer
from rlm_tf.layers.latent.latents import Latents
from rlm_tf.objectives import monte_carlo_terms
from rlm_tf.objectives.gradient_estimators import REPARAMETERISED, SCORE_FUNCTION
from rlm_tf.objectives.monte_carlo_samples import check_numbers

if TYPE_CHECKING:
    from rlm_tf.models.latent.monte_carlo_vae import MonteCarloVAE

# The objectives that use an option, and its value elsewhere.
_USES: dict[str, tuple[tuple[str, ...], float]] = {
    "lambda_": (("kl", "renyi"), 0.0),
    "alpha": (("alpha_iwae", "renyi", "power"), 1.0),
}

_BASELINES = {
    "reinforce": ("moving_average",),
    "vimco": ("swap_in", "leave_one_out"),
}


def sample_counts(num_samples: Any) -> int | tuple[int, int]:
    """Returns K or (N, M) as Python's integers.

    Raises:
        ValueError: If it is neither.
    """
    name = "MonteCarloVAE"
    if not isinstance(num_samples, Sequence):
        check_integer(name, "num_samples", num_samples, 1)
        return int(num_samples)
    if len(num_samples) != 2:
        raise ValueError(
            f"{name}: `num_samples` must be one integer or two, found {num_samples}."
        )
    for place, count in enumerate(num_samples):
        check_integer(name, f"num_samples[{place}]", count, 1)
    return int(num_samples[0]), int(num_samples[1])


def checked_number(model: str, option: str, value: Any) -> float:
    """Returns an option as one of Python's numbers, which files can have.

    Raises:
        ValueError: If it is none.
    """
    if not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"{model}: `{option}` must be one number, found {value!r}.")


def check_layers(model: str, **parts: Any) -> None:
    """Raises ValueError unless all parts are layers or models."""
    for name, part in parts.items():
        if not isinstance(part, keras.layers.Layer):
            raise ValueError(
                f"{model}: `{name}` must be a Keras layer or model, found "
                f"{type(part).__name__}."
            )


def check_latent_size(
    model: str, decoder: Any, part: str, event_shape: Sequence[int]
) -> None:
    """Raises ValueError if a decoder says that it takes latents of another size.

    Args:
        model: Name of the model; the message starts with it.
        decoder: Those without `latent_size` take any latents.
        part: Name of the part that makes the latents.
        event_shape: Of one example's latents.
    """
    expected, found = math.prod(event_shape), getattr(decoder, "latent_size", None)
    if found not in (None, expected):
        raise ValueError(
            f"{model}: `decoder` takes latents of {found} entries, `{part}` makes "
            f"{expected} ({list(event_shape)} an example)."
        )


def check_latent_options(model: MonteCarloVAE) -> None:
    """Raises ValueError if options do not fit each other or the latents."""
    name = type(model).__name__
    if not isinstance(model.latents, Latents):
        raise ValueError(
            f"{name}: `latents` must be an rlm_tf.layers.Latents, found "
            f"{type(model.latents).__name__}."
        )
    check_latent_size(name, model.decoder, "latents", model.latents.event_shape)
    known = ("elbo", *REPARAMETERISED, *SCORE_FUNCTION)
    if model.estimator not in known:
        raise ValueError(
            f"{name}: `estimator` must be one of {', '.join(known)}, found "
            f"{model.estimator!r}."
        )
    check_numbers(name, model.alpha, model.lambda_)
    monte_carlo_terms.decompose(name, model.objective, **model.objective_options())
    if model.baseline not in (None, *_BASELINES.get(model.estimator, ())):
        own = [repr(b) for b in _BASELINES.get(model.estimator, ())]
        raise ValueError(
            f"{name}: `baseline` of {model.estimator!r} must be "
            f"{' or '.join(['None', *own])}, found {model.baseline!r}."
        )
    for option, (objectives, idle) in _USES.items():
        found = getattr(model, option)
        if model.objective not in objectives and found != idle:
            raise ValueError(
                f"{name}: `{option}` is of the objectives {', '.join(objectives)}; "
                f"found {found} with {model.objective!r}."
            )
    differentiates = model.estimator not in SCORE_FUNCTION
    if differentiates and not model.latents.is_reparameterised:
        raise ValueError(
            f"{name}: `estimator={model.estimator!r}` differentiates samples, which "
            f"{type(model.latents).__name__} cannot; use reinforce or vimco."
        )
    if model.estimator == "vimco" and model.most_samples == 1:
        raise ValueError(
            f"{name}: VIMCO with one sample has no baseline; use "
            "`estimator='reinforce'`."
        )
    one_sample = not isinstance(model.num_samples, int) and min(model.num_samples) == 1
    if model.estimator == "vimco" and model.baseline == "leave_one_out" and one_sample:
        raise ValueError(
            f"{name}: `baseline='leave_one_out'` needs two samples in every term, "
            f"found {model.num_samples}."
        )
    if model.estimator == "elbo" and not isinstance(model.num_samples, int):
        raise ValueError(
            f"{name}: `estimator='elbo'` has one number of samples, found "
            f"{model.num_samples}."
        )

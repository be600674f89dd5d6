"""Encoders with another rate of dropout: fine-tuning may want more of it."""

from __future__ import annotations

from rlm_tf.layers import TransformerEncoder
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel


def with_dropout(
    encoder: TransformerEncoder, rate: float, *, seed: int | None = None
) -> TransformerEncoder:
    """Returns a new encoder with the weights of another and a rate of its own.

    Args:
        encoder: It stays as it is.
        rate: Of dropout, in [0, 1).
        seed: Of its masks; None: that of the encoder.

    Raises:
        ValueError: If the rate is out of range.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"with_dropout: `rate` must lie in [0, 1), found {rate}.")
    config = {**encoder.get_config(), "dropout": rate}
    if seed is not None:
        config["seed"] = seed
    found = TransformerEncoder.from_config(config)
    found.set_weights(encoder.get_weights())
    return found


def masked_with_dropout(model: MaskedLanguageModel, rate: float) -> MaskedLanguageModel:
    """Returns the same of a masked language model; it is not compiled."""
    found = MaskedLanguageModel(
        with_dropout(model.encoder, rate),
        max_positions=model.max_positions,
        clip_norm=model.clip_norm,
        seed=model.seed,
    )
    found.head.set_weights(model.head.get_weights())
    return found

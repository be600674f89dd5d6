"""The generator that belongs to a detector, by ELECTRA's shares of its sizes."""

from __future__ import annotations

from rlm_tf.checks import check_range
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder

# Width of a head of BERT and of ELECTRA.
_HEAD = 64


def generator_encoder(
    discriminator: TransformerEncoder,
    *,
    width: float = 1.0,
    layers: float = 1.0,
    seed: int = 0,
) -> TransformerEncoder:
    """Returns a new encoder like another, narrower or with fewer layers.

    A share of the width is rounded; heads are as many as 64 goes into it, one at least,
    and networks four times as wide, as in ELECTRA's code. Embeddings keep the width of
    the other's, so that `Electra` may share them.

    Args:
        discriminator: The other encoder; its weights are not looked at.
        width: Share of its width, in (0, 1]: 0.25 or a third for ELECTRA, 1 for Dong
            (2025, 1.4).
        layers: Share of its blocks, rounded, one at least: 1 for ELECTRA and for Dong's
            Base, a third for Large.
        seed: Of weights and dropout.

    Raises:
        ValueError: If a share is out of range, or the heads do not divide the width.
    """
    name = "generator_encoder"
    for argument, share in {"width": width, "layers": layers}.items():
        check_range(name, 0, 1, **{argument: share})
        if share == 0:
            raise ValueError(f"{name}: `{argument}` must be in (0, 1], found 0.")
    config = discriminator.get_config()
    del config["name"]
    config["seed"] = seed
    config["num_layers"] = max(1, round(layers * discriminator.num_layers))
    if width < 1:
        size = max(1, round(width * discriminator.width))
        config |= {
            "width": size,
            "num_heads": max(1, size // _HEAD),
            "feed_forward": 4 * size,
            "embedding_width": discriminator.embedding_width or discriminator.width,
        }
    return TransformerEncoder.from_config(config)

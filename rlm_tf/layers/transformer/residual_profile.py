"""What networks of an encoder add to a batch, for Admin's residual weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.layers.transformer.admin import admin_profile


def profile(encoder: Any, tokens: tf.Tensor, segments: tf.Tensor | None) -> np.ndarray:
    """Measures what each network adds to a batch, and sets residual weights by it.

    One pass without dropout, with the first omega 1 and each other one what is said by
    the variances before it, over all features of tokens that are no padding (Liu et al.
    2020, arXiv 2004.08249). Not in a graph.

    Args:
        encoder: A `TransformerEncoder` with Admin.
        tokens: int `[B, T]`.
        segments: int `[B, T]` or None.

    Returns:
        The omegas, float64 `[2 num_layers]`, attention and network of each layer.

    Raises:
        ValueError: If there is no Admin, or no token that is no padding.
    """
    name = f"{type(encoder).__name__}.profile_residuals"
    if encoder.residual_scaling != "admin":
        raise ValueError(f'{name}: needs `residual_scaling="admin"`.')
    tokens = tf.convert_to_tensor(tokens)
    present = ~encoder.padding(tokens)
    if not tf.reduce_any(present):
        raise ValueError(f"{name}: `tokens` are nothing but padding.")
    hidden = encoder.embedded(tokens, segments)
    seen, bias = encoder.seen(tokens), encoder.bias_of(tf.range(tokens.shape[1]))
    variances: list[float] = []

    def omega_after(added: tf.Tensor) -> float:
        rows = tf.cast(tf.boolean_mask(added, present), tf.float64)
        variances.append(float(tf.math.reduce_variance(rows)))
        return float(admin_profile(variances)[-1])

    omegas = []
    for block in encoder.blocks:
        mixed, _ = block.attention(hidden, visible=seen, bias=bias)
        omegas.append(omega_after(mixed))
        block.attention_residual.assign(tf.fill([encoder.width], omegas[-1]))
        hidden = block.after_attention(hidden, mixed)
        added = block.network(hidden)
        omegas.append(omega_after(added))
        block.network_residual.assign(tf.fill([encoder.width], omegas[-1]))
        hidden = block.after_network(hidden, added)
    return np.array(omegas)

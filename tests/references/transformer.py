"""A transformer block by loops, in float64."""

from __future__ import annotations

import math

import numpy as np


def layer_norm(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Normalises the last axis."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + offset


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the normal distribution function."""
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """The approximation of BERT's first code."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def turned(vector: np.ndarray, position: float) -> np.ndarray:
    """Turns pairs (i, i + d/2) by `position / 10000^(2i/d)`, as complex numbers."""
    half = len(vector) // 2
    angles = position * 10_000.0 ** -(np.arange(half) / half)
    pairs = (vector[:half] + 1j * vector[half:]) * np.exp(1j * angles)
    return np.concatenate([pairs.real, pairs.imag])


def block(
    weights: dict[str, np.ndarray],
    x: np.ndarray,
    num_heads: int,
    context_length: int,
    *,
    causal: bool = True,
    positions: str = "rotary",
    mask: np.ndarray | None = None,
) -> np.ndarray:
    """Returns `[T, D]` of one row `[T, D]`, token by token and head by head.

    Args:
        weights: By the names of the layer's parts: `attention_norm` and `network_norm`
            (scale, offset), the others (kernel, bias), `distance_bias` `[H, ...]`.
        x: Input.
        num_heads: H.
        context_length: C.
        causal: Whether tokens see only themselves and the C before.
        positions: rotary or learnt.
        mask: bool `[T]`, which tokens may be seen.
    """
    steps, width = x.shape
    size = width // num_heads
    normed = layer_norm(x, *weights["attention_norm"])
    kernel, bias = weights["query_key_value"]
    query, key, value = np.split(normed @ kernel + bias, 3, axis=-1)
    mixed = np.zeros_like(x)
    for t in range(steps):
        for head in range(num_heads):
            part = slice(head * size, (head + 1) * size)
            scores = {}
            for s in range(steps):
                distance = t - s
                if causal and not 0 <= distance <= context_length:
                    continue
                if mask is not None and not mask[s]:
                    continue
                q, k = query[t, part], key[s, part]
                extra = 0.0
                if positions == "rotary":
                    q, k = turned(q, t), turned(k, s)
                else:
                    least = 0 if causal else -context_length
                    place = min(max(distance, least), context_length) - least
                    extra = weights["distance_bias"][head, place]
                scores[s] = q @ k / math.sqrt(size) + extra
            highest = max(scores.values())
            total = sum(math.exp(score - highest) for score in scores.values())
            for s, score in scores.items():
                mixed[t, part] += math.exp(score - highest) / total * value[s, part]
    kernel, bias = weights["attention_output"]
    hidden = x + mixed @ kernel + bias
    kernel, bias = weights["network_hidden"]
    inner = gelu(layer_norm(hidden, *weights["network_norm"]) @ kernel + bias)
    kernel, bias = weights["network_output"]
    return hidden + inner @ kernel + bias


def post_norm_block(
    weights: dict[str, np.ndarray],
    x: np.ndarray,
    num_heads: int,
    *,
    bias: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    omegas: tuple[np.ndarray, np.ndarray] | None = None,
    activation=gelu,
) -> np.ndarray:
    """Returns `[T, D]` of a block in which sums are normalised, one row.

    Args:
        weights: As those of `block`.
        x: Input, `[T, D]`.
        num_heads: H.
        bias: `[H, T, T]`, added to scores.
        mask: bool `[T, T]`, what each token may see.
        omegas: Weights of both residual connections, `[D]` each.
        activation: Of the network.
    """
    steps, width = x.shape
    size = width // num_heads
    first, second = omegas or (np.ones(width), np.ones(width))
    kernel, offset = weights["query_key_value"]
    query, key, value = np.split(x @ kernel + offset, 3, axis=-1)
    mixed = np.zeros_like(x)
    for t in range(steps):
        for head in range(num_heads):
            part = slice(head * size, (head + 1) * size)
            scores = [
                query[t, part] @ key[s, part] / math.sqrt(size)
                + (0.0 if bias is None else bias[head, t, s])
                for s in range(steps)
            ]
            seen = [mask is None or mask[t, s] for s in range(steps)]
            powers = [math.exp(z) * ok for z, ok in zip(scores, seen, strict=True)]
            for s in range(steps):
                mixed[t, part] += powers[s] / sum(powers) * value[s, part]
    kernel, offset = weights["attention_output"]
    hidden = layer_norm(first * x + mixed @ kernel + offset, *weights["attention_norm"])
    kernel, offset = weights["network_hidden"]
    inner = activation(hidden @ kernel + offset)
    kernel, offset = weights["network_output"]
    return layer_norm(
        second * hidden + inner @ kernel + offset, *weights["network_norm"]
    )

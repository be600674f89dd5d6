"""Induced models in plain float64 probabilities, written as the sums of the paper."""

from __future__ import annotations

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def induced_probs(sample_probs: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Eq. (2): `sum_k w_k Q_k / sum_k w_k`, one sample after the other."""
    total = np.zeros_like(sample_probs[0], dtype=np.float64)
    norm = np.zeros(sample_probs.shape[1:-1])
    for k, probs in enumerate(sample_probs):
        weight = np.ones(probs.shape[:-1]) if weights is None else weights[k]
        weight = np.broadcast_to(weight, probs.shape[:-1])
        total += weight[..., None] * probs
        norm += weight
    return total / norm[..., None]


def imm_loss(target: np.ndarray, induced: np.ndarray) -> np.ndarray:
    """Eq. (15), word by word; words of target probability 0 contribute nothing."""
    loss = np.zeros(target.shape[:-1])
    for y in range(target.shape[-1]):
        p, q = target[..., y], induced[..., y]
        with np.errstate(divide="ignore"):
            loss -= np.where(p > 0, p * np.log(np.where(p > 0, q, 1.0)), 0.0)
    return loss


def grouped_imm_loss(
    logits: np.ndarray,
    rows: np.ndarray,
    groups: np.ndarray,
    target: np.ndarray,
    bank_sums: np.ndarray | None = None,
    bank_counts: np.ndarray | None = None,
) -> np.ndarray:
    """The IMM loss of every group, member by member."""
    losses = []
    for group in range(len(target)):
        members = [
            softmax(logits[row])
            for row, member_of in zip(rows, groups, strict=True)
            if member_of == group
        ]
        total, count = np.sum(members, axis=0), float(len(members))
        if bank_sums is not None:
            total, count = total + bank_sums[group], count + bank_counts[group]
        losses.append(imm_loss(target[group], total / count))
    return np.array(losses)


def numeric_gradient(function, point: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences of a scalar function."""
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        ahead, behind = point.copy(), point.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (function(ahead) - function(behind)) / (2 * step)
    return gradient

"""What is lost where only the most probable words of a teacher are stored."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.models.language.interface import interface_of
from rlm_tf.objectives.distillation import kd, lumped_kd

_WORDS = (1, 4, 16, 64, 256, 1024)
# Tokens, and tokens of a window.
_MOST, _WINDOW = 2000, 100


def lump_errors(
    teacher: keras.Model, student: keras.Model, text: np.ndarray, temperature: float
) -> list[dict[str, float]]:
    """Returns the loss from k stored words of a teacher, and its gradient, beside KD.

    Args:
        teacher: A language model.
        student: Another one of its vocabulary.
        text: Int `[N]`; the first 2,000 tokens are read.
        temperature: T.

    Returns:
        One of each k: `k`, `mass` of the stored words, `kd` and `lumped` losses, means
        in nats, and `gradient`, the norm of what is wrong in the gradient of logits,
        over that of the gradient.
    """
    number = min(_MOST, len(text)) // _WINDOW * _WINDOW
    rows = tf.constant(text[:number].reshape(-1, _WINDOW), tf.int32)
    said = [
        tf.reshape(logits, [number, logits.shape[-1]])
        for logits in (
            interface_of(m).whole_logits(rows, False) for m in (teacher, student)
        )
    ]
    log_probs = tf.nn.log_softmax(said[0] / temperature)
    exact, slope = _with_gradient(
        lambda logits: kd(said[0], logits, temperature=temperature).loss, said[1]
    )
    found = []
    for k in [k for k in _WORDS if k < log_probs.shape[-1]]:
        top, words = tf.math.top_k(log_probs, k)
        loss, own = _with_gradient(
            lambda logits, top=top, words=words: (
                lumped_kd(words, top, logits, temperature=temperature).loss
            ),
            said[1],
        )
        wrong = tf.norm(own - slope) / tf.norm(slope)
        found.append(
            {
                "k": float(k),
                "mass": float(tf.reduce_mean(tf.reduce_sum(tf.exp(top), axis=-1))),
                "kd": float(exact),
                "lumped": float(loss),
                "gradient": float(wrong),
            }
        )
    return found


def _with_gradient(loss_of: Any, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = tf.reduce_mean(loss_of(logits))
    return loss, tape.gradient(loss, logits)

"""Sources whose truth is known, and the expected losses of models of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.objectives.imm import induced_cross_entropy, noising_cross_entropy


class ExactSource:
    """A source of outcomes given a short and an extended context; all float64.

    Attributes:
        probs: P `[S, E, V]`.
        pi: `[S, E]`, how often each full context occurs.
        short: `[S]`, how often each short context occurs.
        restricted: `[S, V]`, the exact restricted model P_bar.
    """

    def __init__(self, probs: npt.ArrayLike, pi: npt.ArrayLike):
        self.probs = np.asarray(probs, np.float64)
        self.pi = np.asarray(pi, np.float64)
        self.short = self.pi.sum(axis=1)
        joint = self.pi[..., np.newaxis] * self.probs
        self.restricted = joint.sum(axis=1) / self.short[:, np.newaxis]

    @classmethod
    def proposition_5_1(cls) -> ExactSource:
        """Returns the counterexample of appendix B.2.

        The printed tensor's outer blocks are the outcome, its rows the short and its
        columns the extended contexts: the reading that gives every printed table.
        """
        zero = np.array([[0.99, 0.01], [0.5, 0.5]])
        return cls(np.stack([zero, 1 - zero], axis=-1), [[0.4, 0.3], [0.2, 0.1]])

    @classmethod
    def random_trigram(cls, num_words: int = 4, seed: int = 8) -> ExactSource:
        """Returns the stationary source of a random second-order chain."""
        rng = np.random.default_rng(seed)
        chain = rng.dirichlet(np.full(num_words, 0.5), size=(num_words, num_words))
        # Descent takes long to find very small probabilities.
        chain = 0.95 * chain + 0.05 / num_words
        pairs = np.full((num_words, num_words), num_words**-2)
        for _ in range(500):
            pairs = np.einsum("uv,uvw->vw", pairs, chain)
        return cls(chain.transpose(1, 0, 2), pairs.T)

    def kl_divergence(self, probs: npt.ArrayLike) -> float:
        """Returns `KL(P || Q)`, mean over full contexts, nats."""
        ratios = np.log(self.probs) - np.log(probs)
        return float(np.sum(self.pi[..., np.newaxis] * self.probs * ratios))

    def noising_minimiser(self, coefficient: float) -> np.ndarray:
        """Returns what minimises cross-entropy plus lambda noising, `[S, E, V]`.

        `Q* = (P + lambda P_bar) / (1 + lambda)` in every full context: the targets of
        the two losses, mixed.
        """
        restricted = self.restricted[:, np.newaxis]
        return (self.probs + coefficient * restricted) / (1 + coefficient)

    # === Expected losses of `log Q`, `[S, E, V]` ===

    def cross_entropy(self, log_probs: tf.Tensor) -> tf.Tensor:
        """Returns the expected cross-entropy, nats."""
        return -tf.reduce_sum(self.pi[..., np.newaxis] * self.probs * log_probs)

    def induced(self, log_probs: tf.Tensor) -> tf.Tensor:
        """Returns the expected IMM loss; the extended contexts are the samples."""
        samples = tf.transpose(log_probs, [1, 0, 2])
        loss = induced_cross_entropy(self.restricted, samples, np.log(self.pi.T)).loss
        return tf.reduce_sum(self.short * loss)

    def noising(self, log_probs: tf.Tensor) -> tf.Tensor:
        """Returns the expected noising loss."""
        targets = np.broadcast_to(self.restricted[:, np.newaxis], self.probs.shape)
        loss = noising_cross_entropy(targets, log_probs).loss
        return tf.reduce_sum(self.pi * loss)

    def g(self, probs: npt.ArrayLike) -> float:
        """Returns `noising(Q) - noising(P)`, nats: negative where Q seems better."""
        truth = self.noising(tf.constant(np.log(self.probs)))
        return float(self.noising(tf.constant(np.log(probs))) - truth)

    def minimise(
        self, loss: str, coefficient: float, steps: int = 8000, rate: float = 4.0
    ) -> np.ndarray:
        """Descends from the uniform model along free logits.

        Args:
            loss: `"induced"` or `"noising"`, added to the cross-entropy.
            coefficient: lambda.
            steps: Of gradient descent.
            rate: Its learning rate.

        Returns:
            Q `[S, E, V]`.
        """
        logits = _descend(self, loss, coefficient, steps, rate)
        return tf.nn.softmax(logits).numpy()


def _descend(
    source: ExactSource, loss: str, coefficient: float, steps: int, rate: float
) -> tf.Tensor:
    risk = getattr(source, loss)

    @tf.function(jit_compile=True)
    def descend() -> tf.Tensor:
        def step(number: tf.Tensor, logits: tf.Tensor):
            with tf.GradientTape() as tape:
                tape.watch(logits)
                log_probs = tf.nn.log_softmax(logits)
                total = source.cross_entropy(log_probs) + coefficient * risk(log_probs)
            return number + 1, logits - rate * tape.gradient(total, logits)

        start = tf.zeros(source.probs.shape, tf.float64)
        return tf.while_loop(
            lambda number, _: number < steps, step, (tf.constant(0), start)
        )[1]

    return descend()

"""The terms of Phase II: what else a discriminator can teach a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from rlm_tf.data.batches.pair_batch import PairBatch
from rlm_tf.layers.basic.replica_noise import replica_noise
from rlm_tf.models.bmi.continuations import continuation
from rlm_tf.models.bmi.trajectories import trajectories
from rlm_tf.objective_model.term import TermLoss
from rlm_tf.objectives.mutual_information import policy_surrogate
from rlm_tf.objectives.raml import log_importance_weights, scaled_nll
from rlm_tf.padding import PADDING
from rlm_tf.replicas import all_reduce, gather_rows

PhaseTwo = Literal["raml", "rl"]
PHASES_TWO: tuple[PhaseTwo, ...] = ("raml", "rl")


class Weighted(NamedTuple):
    """Importance weights of the sentences of a step.

    Attributes:
        weights: `[P]`, as a fraction of the largest one of all replicas.
        effective_sample_size: Scalar, over all replicas.
    """

    weights: tf.Tensor
    effective_sample_size: tf.Tensor


def rewards(model: Any, pairs: PairBatch) -> tf.Tensor:
    """Returns r = D(X, Y) - D(X, Y*) `[P]`, without dropout and gradient."""
    pieces = tf.concat([pairs.first, pairs.second, pairs.proposal], axis=0)
    x, second, proposal = tf.split(model.features(pieces), 3, axis=0)
    both = tf.concat([proposal, second], axis=0)
    scores = model.discriminator((tf.concat([x, x], axis=0), both))
    of_proposal, of_second = tf.split(tf.stop_gradient(scores), 2)
    found = tf.cast(of_proposal - of_second, tf.float32)
    # Exactly, whatever rows of one product are rounded to.
    return tf.where(pairs.offsets == 0, tf.zeros_like(found), found)


def weighted(
    rewards: tf.Tensor, pairs: PairBatch, *, temperature: float = 1.0
) -> Weighted:
    """Returns weights by which a term's mean is self-normalised over all replicas."""
    log_weights = log_importance_weights(
        rewards, pairs.log_proposals, temperature=temperature
    )
    everywhere = tf.where(pairs.weights > 0, log_weights, log_weights.dtype.min)
    highest = tf.reduce_max(gather_rows(everywhere))
    weights = pairs.weights * tf.exp(tf.minimum(log_weights - highest, 0.0))
    total, squares = all_reduce(
        [tf.reduce_sum(weights), tf.reduce_sum(tf.square(weights))]
    )
    return Weighted(weights, tf.math.divide_no_nan(total**2, squares))


def scaled(
    model: Any, nll: tf.Tensor, lengths: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """Divides the negative log-likelihood of sentences by what `model.scale` says."""
    if model.scale == "batch":
        total = all_reduce(tf.reduce_sum(lengths * weights))
        return nll / tf.cast(total, nll.dtype)
    return scaled_nll(type(model).__name__, nll, lengths, model.scale)


def self_critical(model: Any, pairs: PairBatch) -> tuple[TermLoss, tf.Tensor]:
    """Returns the loss whose gradient is minus that of Eq. (9), and rewards `[P]`.

    The model says sentences (x1, y1) behind the text X of a pair, and (x2, y2) behind
    Y-. (x1, y1) are the pair, (x1, y2) the one drawn apart; baselines are the rewards
    of what it says when it always takes the most probable word, which depend on the
    contexts alone. Sentences are said, read and scored without dropout: the policy is
    the model that is used.
    """
    contexts = tf.concat([pairs.first, pairs.negatives[:, 0]], axis=0)
    number = pairs.first.shape[0] or tf.shape(pairs.first)[0]
    most = pairs.first.shape[1]

    def draw(shape: Sequence[Any], seed: tf.Tensor) -> tf.Tensor:
        return tf.random.stateless_uniform(shape, seed, dtype=tf.float64)

    noise = replica_noise(draw, [number, 2, 2 * most], model.sample_seeds, 0)
    noise = tf.reshape(tf.transpose(noise, [1, 0, 2]), [2 * number, 2 * most])
    said = trajectories(
        model.view,
        tf.concat([contexts, contexts], axis=0),
        tf.concat([noise, tf.zeros_like(noise)], axis=0),
        tf.repeat([False, True], 2 * number),
        model.end_id,
    )
    # Sampled behind X, behind Y-; greedy behind X, behind Y-.
    pieces = tf.concat([said.first, said.second], axis=0)
    phi = tf.split(tf.stop_gradient(model.features(pieces)), 8, axis=0)
    x1, greedy_x1, y1, y2, greedy_y1, greedy_y2 = (
        phi[place] for place in (0, 2, 4, 5, 6, 7)
    )
    scores = model.discriminator(
        (
            tf.concat([x1, x1, greedy_x1, greedy_x1], axis=0),
            tf.concat([y1, y2, greedy_y1, greedy_y2], axis=0),
        )
    )
    joint, marginal, greedy_joint, greedy_marginal = tf.split(scores, 4)
    rows = continuation(contexts, said.both[: 2 * number])
    _, outputs = model.view.read(rows.tokens)
    log_probs = -model.scorer.nll(rows, outputs)
    lengths = tf.reduce_sum(tf.cast(said.first != PADDING, tf.int32), axis=1)
    of_x = tf.range(2 * most)[tf.newaxis] < lengths[: 2 * number, tf.newaxis]
    ln_x1 = tf.reduce_sum(tf.where(of_x, log_probs, 0)[:number], axis=1)
    ln_pair, ln_other = tf.split(tf.reduce_sum(log_probs, axis=1), 2)
    loss, extra = policy_surrogate(
        tf.cast(joint, log_probs.dtype),
        ln_pair,
        tf.cast(marginal, log_probs.dtype),
        ln_x1 + ln_other,
        joint_baseline=-tf.nn.softplus(-greedy_joint),
        marginal_baseline=tf.nn.softplus(greedy_marginal),
    )
    gained = extra.joint_rewards - extra.marginal_rewards
    return TermLoss(loss, pairs.weights), gained

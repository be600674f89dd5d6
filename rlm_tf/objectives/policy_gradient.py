"""The policy gradient of REINFORCE (Williams, 1992), with rewards to go."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_floating, check_shapes
from rlm_tf.numerics import cast_like
from rlm_tf.typing import LossOutput, TensorLike


class PolicyGradientExtra(NamedTuple):
    """By-products of `policy_gradient_loss`.

    Attributes:
        action_log_probs: `[...]`, log-probability of each action taken, nats.
    """

    action_log_probs: tf.Tensor


def rewards_to_go(rewards: TensorLike, discount: float) -> tf.Tensor:
    """Returns `G_t = sum_{k >= t} discount^(k - t) r_k` along the first axis.

    Sums end with the trajectory: nothing stands for what would have come after it.

    Args:
        rewards: `[T, ...]`, floating point; time comes first.
        discount: In [0, 1].

    Returns:
        `[T, ...]`, same dtype.

    Raises:
        ValueError: If `discount` is out of range or there is no axis of time.
        TypeError: If `rewards` is not floating point.
    """
    rewards = tf.convert_to_tensor(rewards)
    check_floating("rewards_to_go", rewards=rewards)
    if rewards.shape.rank == 0:
        raise ValueError("rewards_to_go: `rewards` must have axes [T ...].")
    if not 0 <= discount <= 1:
        raise ValueError(
            f"rewards_to_go: `discount` must lie in [0, 1], found {discount}."
        )
    steps = tf.shape(rewards)[0]
    ages = tf.range(steps) - tf.range(steps)[:, tf.newaxis]
    powers = tf.constant(discount, rewards.dtype) ** tf.cast(
        tf.maximum(ages, 0), rewards.dtype
    )
    weights = tf.where(ages >= 0, powers, tf.zeros_like(powers))
    return tf.tensordot(weights, rewards, axes=1)


def policy_gradient_loss(
    log_probs: TensorLike,
    actions: TensorLike,
    returns: TensorLike,
    baseline: TensorLike | None = None,
) -> LossOutput:
    """Returns `-(G - b) log pi(a | s)` of each step.

    Its gradient, in expectation over actions drawn from the policy, is minus that of
    the expected return; its value means nothing. Returns and baseline get no gradient.

    Args:
        log_probs: `[..., A]`, log-probabilities of all actions.
        actions: int `[...]`, those taken.
        returns: `[...]`, rewards to go.
        baseline: `[...]`, anything that does not depend on the action; None: zero.

    Returns:
        `loss` `[...]`.

    Raises:
        ValueError: If shapes do not fit.
    """
    log_probs = tf.convert_to_tensor(log_probs)
    actions = tf.convert_to_tensor(actions)
    returns = tf.stop_gradient(cast_like(returns, log_probs))
    check_floating("policy_gradient_loss", log_probs=log_probs)
    check_shapes(
        "policy_gradient_loss",
        log_probs=(log_probs[..., 0], "..."),
        actions=(actions, "..."),
        returns=(returns, "..."),
    )
    if baseline is not None:
        baseline = tf.stop_gradient(cast_like(baseline, log_probs))
        check_shapes(
            "policy_gradient_loss",
            returns=(returns, "..."),
            baseline=(baseline, "..."),
        )
        returns -= baseline
    taken = tf.gather(log_probs, actions, batch_dims=actions.shape.rank)
    return LossOutput(-returns * taken, PolicyGradientExtra(taken))

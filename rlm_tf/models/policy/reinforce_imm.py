"""REINFORCE whose policy also matches, on average, one that sees less."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes, known_rank
from rlm_tf.layers.basic.batch_average import batch_mean
from rlm_tf.metrics.declared import declared
from rlm_tf.models.given_logits import no_probabilities
from rlm_tf.objective_model.row_weights import WeightsOfRows
from rlm_tf.objective_model.term import (
    Coefficient,
    TermLoss,
    TermSpec,
    check_coefficient,
)
from rlm_tf.objectives.imm import induced_kl_divergence
from rlm_tf.objectives.policy_gradient import policy_gradient_loss, rewards_to_go
from rlm_tf.restricted import Belief, RestrictedModel
from rlm_tf.typing import TensorLike

BASELINES = ("none", "moving_average")
# Among the outcomes of steps: Keras takes no weights of steps beside several targets.
_WEIGHTS = "sample_weight"


@keras.saving.register_keras_serializable("rlm_tf")
class ReinforceIMM(WeightsOfRows):
    """A policy trained by REINFORCE, with induced model matching on request.

    For every visited state s with observation x the induced policy is the mean of the
    policy over the states that may stand behind x, exactly:
    `Q_hat(a | x) = sum_s' b_x(s') pi(a | s')`; the IMM term is `KL(P_hat(. | x) ||
    Q_hat(. | x))`, averaged over visited states.

    It trains on trajectories: `fit()` takes `(states [B, T], {"actions": [B, T],
    "rewards": [B, T]})`, int, int and float, with an optional weight `[B, T]` that is 0
    where a trajectory is over (what is there does not matter). They must have been
    collected with the policy as it stands: see `rlm_tf.envs.collected_trajectories`.

    Source: Muneeb and Ohannessian, arXiv 2402.12513, section 7 and appendix D.3.

    Args:
        policy: Keras layer or model, int states `[...]` to logits `[..., A]`.
        restricted_model: P_hat, of actions given an observation; None: plain REINFORCE.
        belief: States behind each observation; needed with `restricted_model`.
        coefficient: lambda of the IMM term, or a schedule over steps.
        discount: Of rewards to go, which end with the trajectory.
        baseline: `"none"` as published, or `"moving_average"`: the mean reward to go of
            each time step in earlier batches that reach it, which leaves the expected
            gradient as it is (decay 0.9; zero at first).
        horizon: T, needed with a baseline.
        clip_norm, loss_scale, **kwargs: See `ObjectiveModel`.

    Raises:
        ValueError: If an argument is missing or out of range.
    """

    def __init__(
        self,
        policy: keras.layers.Layer,
        restricted_model: RestrictedModel | None = None,
        belief: Belief | None = None,
        *,
        coefficient: Coefficient = 0.25,
        discount: float = 0.9,
        baseline: str = "none",
        horizon: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if (restricted_model is None) != (belief is None):
            raise ValueError(
                "ReinforceIMM: give `restricted_model` and `belief`, or neither."
            )
        check_coefficient("ReinforceIMM", "coefficient", coefficient)
        _check_sizes(policy, restricted_model, belief)
        if not 0 <= discount <= 1:
            raise ValueError(
                f"ReinforceIMM: `discount` must lie in [0, 1], found {discount}."
            )
        if baseline not in BASELINES:
            raise ValueError(
                f"ReinforceIMM: `baseline` must be one of {', '.join(BASELINES)}; "
                f"found {baseline!r}."
            )
        if baseline != "none":
            if horizon is None:
                raise ValueError(
                    f"ReinforceIMM: `baseline={baseline!r}` needs `horizon`, the steps "
                    "of a trajectory."
                )
            check_integer("ReinforceIMM", "horizon", horizon, 1)
        self.policy = policy
        self.restricted_model = restricted_model
        self.belief = belief
        self.coefficient = coefficient
        self.discount = discount
        self.baseline = baseline
        self.horizon = horizon
        self.return_metric = declared(keras.metrics.Mean(name="return"), "up")
        if baseline != "none":
            self.mean_returns = self.add_weight(
                shape=(horizon,),
                initializer="zeros",
                trainable=False,
                name="mean_returns",
            )
        self.built = True

    def call(self, states: TensorLike) -> tf.Tensor:
        """Returns logits of actions `[..., A]` for int states `[...]`."""
        return self.policy(states)

    def action_probs(self, states: npt.ArrayLike) -> np.ndarray:
        """Returns the policy in int states `[N]`: float32 `[N, A]`; see `collect`."""
        return self._action_probs(tf.convert_to_tensor(states)).numpy()

    @tf.function(reduce_retracing=True)
    def _action_probs(self, states: tf.Tensor) -> tf.Tensor:
        return tf.nn.softmax(tf.cast(self.policy(states), tf.float32))

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains as `keras.Model.fit`; `sample_weight` is `[B, T]`.

        Raises:
            ValueError: If trajectories are to be collected on the way, on replicas.
        """
        replicas = self.distribute_strategy.num_replicas_in_sync
        if getattr(x, "is_on_policy", False) and replicas > 1:
            raise ValueError(
                f"ReinforceIMM: with {replicas} replicas, `collected_trajectories` "
                "would be collected ahead, with a policy of earlier steps; collect "
                "each epoch's batch with `rlm_tf.envs.collect` and fit that."
            )
        return super().fit(x, *args, **kwargs)

    def arranged(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Returns outcomes of steps that hold their weights, and what else weighs."""
        if sample_weight is None or not isinstance(y, dict):
            return y, sample_weight
        return {**y, _WEIGHTS: sample_weight}, None

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        if self.restricted_model is None:
            return [TermSpec("reinforce")]
        return [TermSpec("reinforce"), TermSpec("imm", self.coefficient)]

    @property
    def frozen_models(self) -> list[keras.layers.Layer]:
        return [] if self.restricted_model is None else [self.restricted_model]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        given = {"states": x, "actions": y["actions"], "rewards": y["rewards"]}
        sample_weight = y.get(_WEIGHTS, sample_weight)
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        given = {
            name: known_rank("ReinforceIMM", name, value, "B T")
            for name, value in given.items()
        }
        check_shapes("ReinforceIMM", **{n: (v, "B T") for n, v in given.items()})
        rewards = tf.cast(given["rewards"], tf.float32)
        weights = tf.cast(given.get("sample_weight", tf.ones_like(rewards)), tf.float32)
        if self.baseline != "none":
            check_shapes("ReinforceIMM", rewards=(rewards, f"B {self.horizon}"))
        # What is there where a trajectory is over may be no state, action or number.
        states, actions, rewards = (
            tf.where(weights > 0, values, tf.zeros_like(values))
            for values in (given["states"], given["actions"], rewards)
        )
        logits = tf.cast(self.policy(states), tf.float32)
        rows = tf.reshape(logits, [-1, logits.shape[-1]])
        rows = no_probabilities("ReinforceIMM: `policy`", rows)
        log_probs = tf.reshape(tf.nn.log_softmax(rows), tf.shape(logits))
        returns = tf.transpose(rewards_to_go(tf.transpose(rewards), self.discount))
        baseline = self._baseline(returns, weights, training)
        loss = policy_gradient_loss(log_probs, actions, returns, baseline).loss
        terms = {"reinforce": TermLoss(loss, weights)}
        if self.restricted_model is not None:
            terms["imm"] = TermLoss(self._imm(states), weights)
        self.return_metric.update_state(tf.reduce_sum(rewards, axis=1))
        return terms

    def induced_log_probs(self, observations: TensorLike) -> tf.Tensor:
        """Returns what the policy does given observations `[N]`: `[N, A]`, nats."""
        return self._matched(tf.convert_to_tensor(observations)).extra[0]

    def _imm(self, states: tf.Tensor) -> tf.Tensor:
        assert self.belief is not None
        observations = tf.reshape(self.belief.observe(states), [-1])
        return tf.reshape(self._matched(observations).loss, tf.shape(states))

    def _matched(self, observations: tf.Tensor):
        if self.restricted_model is None or self.belief is None:
            raise ValueError("ReinforceIMM: there is no `restricted_model`.")
        behind, log_weights = self.belief.completions(observations)
        samples = tf.nn.log_softmax(tf.cast(self.policy(behind), tf.float32))
        target = self.restricted_model.probs(observations)
        return induced_kl_divergence(target, samples, log_weights)

    def _baseline(
        self, returns: tf.Tensor, weights: tf.Tensor, training: bool
    ) -> tf.Tensor | None:
        if self.baseline == "none":
            return None
        earlier = tf.convert_to_tensor(self.mean_returns)
        if training:
            means, counts = batch_mean(returns, weights)
            # A time step that no trajectory reaches keeps its mean.
            means = tf.where(counts > 0, 0.9 * earlier + 0.1 * means, earlier)
            self.mean_returns.assign(means)
        return tf.broadcast_to(earlier, tf.shape(returns))

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        layer = keras.saving.serialize_keras_object
        coefficient = self.coefficient
        if not isinstance(coefficient, float | int):
            coefficient = layer(coefficient)
        config.update(
            policy=layer(self.policy),
            restricted_model=layer(self.restricted_model),
            belief=layer(self.belief),
            coefficient=coefficient,
            discount=self.discount,
            baseline=self.baseline,
            horizon=self.horizon,
        )
        return config


def published_reinforce_ratio(num_epochs: int) -> float:
    """Returns the published rule for lambda / (1 + lambda): 0.2, from 200 epochs 0.1.

    `round(0.1891 - 0.0002 num_epochs, 1)`, as the code that made Figure 3 has it; the
    text says that lambda is 0.25 throughout, which is a ratio of 0.2.
    """
    check_integer("published_reinforce_ratio", "num_epochs", num_epochs, 1)
    return max(round(0.1891 - 0.0002 * num_epochs, 1), 0.0)


def _check_sizes(policy: Any, restricted_model: Any, belief: Any) -> None:
    """Raises ValueError if numbers of observations or states differ, where known."""
    for name, first, second in (
        (
            "observations",
            getattr(restricted_model, "num_contexts", None),
            getattr(belief, "num_observations", None),
        ),
        (
            "states",
            getattr(policy, "num_states", None),
            getattr(belief, "num_states", None),
        ),
    ):
        if first is not None and second is not None and first != second:
            owner = "restricted_model" if name == "observations" else "policy"
            raise ValueError(
                f"ReinforceIMM: `{owner}` has {first} {name}, `belief` {second}."
            )

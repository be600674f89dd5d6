"""Averages of all iterates from some step on."""

from __future__ import annotations

import math
from typing import Any

from rlm_tf.averaging.trigger import RULES, Rule, non_monotonic_trigger
from rlm_tf.averaging.weight_average import (
    AveragedWeights,
    LossFunction,
    WeightAverage,
    loss_of,
)
from rlm_tf.averaging.weight_sum import Weights, WeightSum, copies
from rlm_tf.checks import check_integer, check_option


class TailAverage(WeightAverage):
    """Tail averaging: the mean of theta_s .. theta_t, theta_t itself before step s.

    Args:
        start: s >= 1.

    Raises:
        ValueError: If `start` is below 1.
    """

    def __init__(self, start: int) -> None:
        super().__init__()
        check_integer(type(self).__name__, "start", start, 1)
        self.start_step: float = start
        self._sum = WeightSum()

    def add(self, weights: Weights) -> None:
        if self.steps >= self.start_step:
            self._sum.add(weights)

    def proposal(self, weights: Weights) -> tuple[Weights, int]:
        if not self._sum.count:
            return weights, 1
        return self._sum.mean(), self._sum.count

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "sum": self._sum.get_state()}

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        super().set_state(state, on_device)
        self._sum.set_state(state["sum"], on_device)


class StochasticWeightAverage(TailAverage):
    """Stochastic weight averaging, SWA (Izmailov et al. 2018, arXiv 1803.05407).

    The mean of theta_s, theta_{s+c}, theta_{s+2c}, ...: with a cyclical learning rate
    of period c, of the ends of cycles; the rate is the optimiser's own schedule.

    Args:
        start: s >= 1.
        every: c >= 1.

    Raises:
        ValueError: If an argument is below 1.
    """

    def __init__(self, start: int, every: int = 1) -> None:
        super().__init__(start)
        check_integer("StochasticWeightAverage", "every", every, 1)
        self.every = every

    def add(self, weights: Weights) -> None:
        if (self.steps - self.start_step) % self.every == 0:
            super().add(weights)


class TriggeredAverage(TailAverage):
    """Tail averaging that begins when the iterates no longer improve.

    The non-monotonic trigger of NT-ASGD (Merity et al. 2018, arXiv 1708.02182):
    averaging begins with the step after the first evaluation that triggers, or at step
    `latest`. It is followed by finetuning from the best average, averaged at once:

        average = WeightAveraging(TriggeredAverage(5, rule="released"), valid)
        model.fit(data, callbacks=[average], ...)
        with average.best(model):
            start = model.get_weights()
        model.set_weights(start)
        model.compile(keras.optimizers.SGD(1.25 * rate))
        average = WeightAveraging(TailAverage(1), valid)
        model.fit(data, callbacks=[average], ...)

    Args:
        patience: n of the rule.
        latest: Step at which averaging begins at the latest; None: no such step.
        rule: Of `non_monotonic_trigger`. `"stale"`, as Melis uses it (2020): the
            iterate's loss was not the best for n evaluations in a row. `"released"`:
            as the code of NT-ASGD has it.

    Attributes:
        start_step: Where averaging begins, or has begun; infinite if not known yet.

    Raises:
        ValueError: If an argument is below 1 or the rule unknown.
    """

    adapts = True

    def __init__(
        self, patience: int, latest: int | None = None, *, rule: Rule = "stale"
    ) -> None:
        if latest is not None:
            check_integer("TriggeredAverage", "latest", latest, 1)
        super().__init__(latest or 1)
        check_integer("TriggeredAverage", "patience", patience, 1)
        check_option("TriggeredAverage", "rule", rule, RULES)
        self.patience = patience
        self.latest = latest
        self.rule = rule
        self.start_step = latest or math.inf
        self._best = math.inf
        self._stale = 0
        # Of the iterates, before averaging begins.
        self._losses: list[float] = []

    def evaluate(self, loss_fn: LossFunction, weights: Weights) -> AveragedWeights:
        if self.steps < self.start_step:
            weights = copies(weights)
            loss = loss_of(loss_fn, weights)
            self._stale = 0 if loss < self._best else self._stale + 1
            self._best = min(self._best, loss)
            self._losses.append(loss)
            if self._triggers():
                self.start_step = self.steps + 1
            return AveragedWeights(loss, weights, 1)
        return super().evaluate(loss_fn, weights)

    def _triggers(self) -> bool:
        if self.rule == "stale":
            return self._stale >= self.patience
        found = non_monotonic_trigger(self._losses, self.patience, rule=self.rule)
        return found is not None

    def get_state(self) -> dict[str, Any]:
        own = {"start": self.start_step, "best": self._best, "stale": self._stale}
        return {**super().get_state(), **own, "losses": list(self._losses)}

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        super().set_state(state, on_device)
        self.start_step = state["start"]
        self._best = state["best"]
        self._stale = state["stale"]
        # Version 0.1 did not keep them, and had the rule "stale" alone.
        self._losses = list(state.get("losses", []))

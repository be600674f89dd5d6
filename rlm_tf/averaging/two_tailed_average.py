"""Two-Tailed Averaging."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rlm_tf.averaging.weight_average import (
    AveragedWeights,
    LossFunction,
    WeightAverage,
    loss_of,
)
from rlm_tf.averaging.weight_sum import Weights, WeightSum, copies, to_numpy
from rlm_tf.checks import check_integer

RESETS = ("switch", "both")


@dataclasses.dataclass
class _History:
    """The losses of one average: the best, and evaluations since it got better."""

    best: float = math.inf
    stale: int = 0

    def add(self, loss: float) -> None:
        self.stale = 0 if loss < self.best else self.stale + 1
        self.best = min(self.best, loss)


class TwoTailedAverage(WeightAverage):
    """Two-Tailed Averaging, 2TA (Melis 2022, arXiv 2209.12581; 2023, chapter 3).

    It keeps a short and a long average of the last S and L iterates, S <= L. When the
    short one is at least as good at an evaluation, it becomes the long one and a new
    short one is begun: so the long average follows the optimal length without any
    hyper-parameter (Algorithm 1). Algorithm 2, the default, also switches, or empties
    the short average, when the one or the other stagnates, and proposes the iterate
    itself while it is better than the long average.

    "Stagnating" has no number in the texts: here an average stagnates when it has not
    improved on its best loss for `patience` evaluations in a row. A new long average
    inherits the history of the short one it was; an emptied average begins anew.

    Short and long are not two sums: the long average is what it had at the last switch
    and the short one, so a step adds to one sum only.

    Args:
        patience: Evaluations without improvement after which an average stagnates. The
            one hint in the texts, Figure 3.6, shows 3.
        extended: Whether Algorithm 2 is run; else Algorithm 1.
        reset: What a stagnating long average does: "switch", as Algorithm 2 is printed;
            "both", as the text of that figure has it: the long average is proposed once
            more, then both are emptied.

    Attributes:
        short_length: S.
        long_length: L.
        event: What the last evaluation did: some of "switch", "empty short", "empty
            both", joined by "; ".
        losses: The last evaluation's losses by name: "raw" (Algorithm 2 only), "short"
            and "long", before any switch.

    Raises:
        ValueError: If `patience` is below 1 or `reset` unknown; from `evaluate`, if
            there was no update since the last evaluation.
    """

    adapts = True

    def __init__(
        self, patience: int = 3, extended: bool = True, *, reset: str = "switch"
    ) -> None:
        super().__init__()
        check_integer("TwoTailedAverage", "patience", patience, 1)
        if reset not in RESETS:
            raise ValueError(
                f"TwoTailedAverage: `reset` must be one of {', '.join(RESETS)}; found "
                f"{reset!r}."
            )
        self.patience = patience
        self.extended = extended
        self.reset = reset
        self.event = ""
        self.losses: dict[str, float] = {}
        self._short = WeightSum()
        # The mean and number of those iterates of the long average that the short one
        # does not have.
        self._older: Weights = []
        self._older_length = 0
        self._short_history = _History()
        self._long_history = _History()
        self._since_evaluation = 0

    @property
    def short_length(self) -> int:
        return self._short.count

    @property
    def long_length(self) -> int:
        return self._older_length + self._short.count

    def add(self, weights: Weights) -> None:
        self._since_evaluation += 1
        self._short.add(weights)

    def proposal(self, weights: Weights) -> tuple[Weights, int]:
        """Returns the long average, or the present iterate while it is empty."""
        if not self.long_length:
            return weights, 1
        return self._long_mean(), self.long_length

    def evaluate(self, loss_fn: LossFunction, weights: Weights) -> AveragedWeights:
        """Evaluates the averages, adapts them, and returns the best estimate.

        Two or three losses are computed, one fewer while both averages are the same.

        Args:
            loss_fn: Maps a list of arrays to a loss.
            weights: The present iterate.

        Returns:
            The long average (after a switch, that is the short one of before) or, with
            Algorithm 2, the present iterate, and its loss and length.
        """
        period = self._since_evaluation
        if not period:
            raise ValueError(
                "TwoTailedAverage.evaluate: there was no `update` since the last "
                "evaluation."
            )
        # `loss_fn` may put what it gets into variables that `weights` are.
        weights = copies(weights)
        raw_loss = loss_of(loss_fn, weights) if self.extended else math.inf
        short, long = self._short.mean(), None
        short_loss = long_loss = loss_of(loss_fn, short)
        if self._older_length:
            long = self._long_mean()
            long_loss = loss_of(loss_fn, long)
        # Nothing has changed so far: if a loss fails, it can be tried again.
        self._since_evaluation = 0
        self.losses = {"short": short_loss, "long": long_loss}
        if self.extended:
            self.losses["raw"] = raw_loss
        self._short_history.add(short_loss)
        self._long_history.add(long_loss)
        self.event = ""
        empty_both = False
        if short_loss <= long_loss:
            long_loss, long = short_loss, short
            self._switch(short)
        elif self._stagnates(self._long_history):
            if self.reset == "switch":
                long_loss, long = short_loss, short
                self._switch(short)
            else:
                empty_both = True
        elif self._stagnates(self._short_history):
            self._empty_short(long)
        length = self.long_length
        if self.extended and length > 1 and raw_loss <= long_loss:
            if length == period:
                empty_both = True
            long_loss, long, length = raw_loss, weights, 1
        if empty_both:
            self._empty_both()
        assert long is not None  # equal averages always switch
        return AveragedWeights(long_loss, copies(long), length)

    # === Parts ===

    def _stagnates(self, history: _History) -> bool:
        return self.extended and history.stale >= self.patience

    def _long_mean(self) -> Weights:
        return self._short.mean_with(self._older, self._older_length)

    def _switch(self, short: Weights) -> None:
        self._older, self._older_length = short, self._short.count
        self._long_history = self._short_history
        self._new_short("switch")

    def _empty_short(self, long: Weights | None) -> None:
        assert long is not None  # equal averages always switch
        self._older, self._older_length = long, self.long_length
        self._new_short("empty short")

    def _empty_both(self) -> None:
        self._older, self._older_length = [], 0
        self._long_history = _History()
        self._new_short("empty both")

    def _new_short(self, event: str) -> None:
        self._short.clear()
        self._short_history = _History()
        self.event = "; ".join(filter(None, [self.event, event]))

    # === State ===

    def get_state(self) -> dict[str, Any]:
        return {
            **super().get_state(),
            "short": self._short.get_state(),
            "older": to_numpy(self._older),
            "older_length": self._older_length,
            "short_history": dataclasses.asdict(self._short_history),
            "long_history": dataclasses.asdict(self._long_history),
            "since_evaluation": self._since_evaluation,
            "event": self.event,
            "losses": self.losses,
        }

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        super().set_state(state, on_device)
        self._short.set_state(state["short"], on_device)
        self._older = list(state["older"])
        self._older_length = state["older_length"]
        self._short_history = _History(**state["short_history"])
        self._long_history = _History(**state["long_history"])
        self._since_evaluation = state["since_evaluation"]
        self.event = state["event"]
        self.losses = dict(state["losses"])

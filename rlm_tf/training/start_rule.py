"""Switches induced model matching on once the language model is good enough."""

from __future__ import annotations

import logging
import math
from typing import Any

from rlm_tf.training.learning_rate import check_settable, set_learning_rate
from rlm_tf.training.switch_phase import SwitchPhase
from rlm_tf.training.triggers import MetricBelow

_LOGGER = logging.getLogger(__name__)


class StartRule(SwitchPhase):
    """Sets `model.active` from 0 to 1 when validation perplexity is low enough.

    The model multiplies the coefficients of its additional terms by the variable
    `active`. From scratch, a large coefficient leads the authors' models to a plateau
    near the unigram model's perplexity; they start IMM below perplexity 90 on Penn
    Treebank, and then set the learning rate to 0.5 once. Put it after
    `LearningRateHalving`, which would halve that rate in the same epoch.

    Args:
        perplexity: IMM starts after the first epoch with a validation perplexity,
            `exp(logs[monitor])`, below this.
        monitor: A log in nats a token.
        learning_rate: The learning rate is set to this at the start; None: kept.

    Attributes:
        started: Whether IMM is on.

    Raises:
        ValueError: If `perplexity` or `learning_rate` is not positive; when training
            begins, if the model has no variable `active`; after an epoch, if `monitor`
            is not in its logs.
    """

    def __init__(
        self,
        perplexity: float = 90.0,
        *,
        monitor: str = "val_nll",
        learning_rate: float | None = None,
    ):
        for name, value in (
            ("perplexity", perplexity),
            ("learning_rate", learning_rate),
        ):
            if value is not None and not value > 0:
                raise ValueError(
                    f"StartRule: `{name}` must be positive, found {value}."
                )
        super().__init__(MetricBelow(monitor, math.log(perplexity)))
        self.perplexity = perplexity
        self.monitor = monitor
        self.learning_rate = learning_rate

    @property
    def started(self) -> bool:
        """Whether IMM is on."""
        return self.switched_to is not None

    def check(self) -> None:
        if not hasattr(getattr(self.model, "active", None), "assign"):
            raise ValueError(
                f"StartRule: {type(self.model).__name__} has no variable `active` that "
                "switches its additional terms on, as InducedModelMatching has."
            )
        if self.learning_rate is not None:
            check_settable(self.model, type(self).__name__)

    def begin(self) -> int:
        self.keep(1)
        if self.learning_rate is not None:
            set_learning_rate(self.model, self.learning_rate)
        return 1

    def keep(self, phase: int) -> None:
        self.model.active.assign(float(phase))

    def report(self, place: str) -> None:
        _LOGGER.info(
            "%s: perplexity is below %g, the additional terms start.",
            place,
            self.perplexity,
        )

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # In models where `active` is a weight, reloading must not switch terms off.
        self.keep(int(self.started))

    def get_state(self) -> dict[str, Any]:
        """Returns whether IMM is on."""
        return {"started": self.started}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self.switched_to = 1 if state["started"] else None

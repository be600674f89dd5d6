"""Switches induced model matching on once the language model is good enough."""

from __future__ import annotations

import logging
import math
from typing import Any

import keras

from rlm_tf.training.learning_rate import check_settable, set_learning_rate
from rlm_tf.training.monitor import monitored

_LOGGER = logging.getLogger(__name__)


class StartRule(keras.callbacks.Callback):
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
        super().__init__()
        for name, value in (
            ("perplexity", perplexity),
            ("learning_rate", learning_rate),
        ):
            if value is not None and not value > 0:
                raise ValueError(
                    f"StartRule: `{name}` must be positive, found {value}."
                )
        self.perplexity = perplexity
        self.monitor = monitor
        self.learning_rate = learning_rate
        self.started = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if not hasattr(getattr(self.model, "active", None), "assign"):
            raise ValueError(
                f"StartRule: {type(self.model).__name__} has no variable `active` that "
                "switches its additional terms on, as InducedModelMatching has."
            )
        if self.learning_rate is not None:
            check_settable(self.model, type(self).__name__)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # In models where `active` is a weight, reloading must not switch terms off.
        self.model.active.assign(float(self.started))

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # A recovery in mid-epoch may have brought `active` back from before the start.
        if self.started:
            self.model.active.assign(1.0)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        nats = monitored(logs, self.monitor, type(self).__name__)
        if self.started or not nats < math.log(self.perplexity):
            return
        self.started = True
        self.model.active.assign(1.0)
        if self.learning_rate is not None:
            set_learning_rate(self.model, self.learning_rate)
        _LOGGER.info(
            "Epoch %d: perplexity %.2f is below %g, the additional terms start.",
            epoch + 1,
            math.exp(nats),
            self.perplexity,
        )

    def get_state(self) -> dict[str, Any]:
        """Returns whether IMM is on."""
        return {"started": self.started}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self.started = state["started"]

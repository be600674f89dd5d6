"""What a model with terms logs: the total, a metric for each term, and the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from rlm_tf.metrics.declared import Directions, is_logged, with_direction
from rlm_tf.objective_model.declared_model import DeclaredModel


class LoggedModel(DeclaredModel):
    """Base class of `ObjectiveModel`, which updates the metrics.

    Args:
        term_names: See `ObjectiveModel`.
        **kwargs: Passed to `keras.Model`.
    """

    def __init__(self, *, term_names: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(term_names=term_names, **kwargs)
        self.total_metric = keras.metrics.Mean(name="loss")
        self.term_metrics: dict[str, list[keras.metrics.Metric]] = {}
        self._evaluates = False
        # Names of the terms that evaluation has; None: not known yet. A frozen set is
        # no object that checkpoints keep.
        self._evaluated: frozenset[str] | None = None

    def _complete(self) -> None:
        super()._complete()
        for spec in self.term_specs:
            metrics = self.make_term_metrics(spec.name)
            self.term_metrics[spec.name] = [with_direction(m, "down") for m in metrics]
        # Those of terms follow `loss`, wherever a constructor makes others: checkpoints
        # name the metrics by their places in this list.
        of_terms = [m for metrics in self.term_metrics.values() for m in metrics]
        first = [self.total_metric, *of_terms]
        others = [m for m in self._metrics if not any(m is known for known in first)]
        self._metrics[:] = [*first, *others]

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.evaluate`, and logs what evaluation updates."""
        self._evaluates = True
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            self._evaluates = False

    @property
    def inner_metrics(self) -> Sequence[keras.metrics.Metric]:
        """Metrics that a wrapped model updates in this one's steps, to be logged."""
        return ()

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        own = [self.total_metric]
        for metrics in self.term_metrics.values():
            own.extend(metrics)
        # Keras counts these too, and a tracker called `loss` of its own.
        known = {metric.name for metric in own}
        others = [*super().metrics, *self.inner_metrics]
        own += [m for m in others if m.name not in known]
        return [*own, Directions(own)]

    def get_metrics_result(self) -> dict[str, Any]:
        """Returns what metrics hold, by name; inside `evaluate`, evaluation's alone."""
        return self._results(training=not self._evaluates)

    def reset_metrics(self) -> None:
        """Sets metrics back; inside `evaluate`, those of training alone stay."""
        if not self._evaluates:
            reset = self.metrics
        else:
            # As declared, whatever an earlier evaluation of this process has had: a
            # resumed run has had none.
            reset = self._counted(training=False, evaluated=None)
        for metric in reset:
            metric.reset_state()

    def _logged(self, training: bool) -> list[keras.metrics.Metric]:
        """Returns the metrics that are in the logs of training, or of evaluation."""
        return self._counted(training, None if training else self._evaluated)

    def _counted(
        self, training: bool, evaluated: frozenset[str] | None
    ) -> list[keras.metrics.Metric]:
        """Returns metrics without those of terms that do not count.

        Args:
            training: Of training, or of evaluation.
            evaluated: The terms that count; None: as declared.
        """
        left_out: list[keras.metrics.Metric] = []
        for name, metrics in self.term_metrics.items():
            counts = self.term_counts(name, training)
            if evaluated is not None:
                counts = name in evaluated
            left_out += [] if counts else metrics
        return [
            metric
            for metric in self.metrics
            if is_logged(metric, training) and not any(metric is m for m in left_out)
        ]

    def _results(self, training: bool) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for metric in self._logged(training):
            result = metric.result()
            single = not isinstance(result, dict)
            results.update({metric.name: result} if single else result)
        return results

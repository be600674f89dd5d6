"""Models whose weights Keras cannot take as they are."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.objective_model.objective_model import ObjectiveModel


class WeightsOfRows(ObjectiveModel):
    """Base class: `fit()` and `evaluate()` arrange targets and weights before Keras."""

    def arranged(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Returns targets and weights in a form that Keras takes."""
        raise NotImplementedError(f"{type(self).__name__} has no `arranged`.")

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        *args: Any,
        sample_weight: Any = None,
        validation_data: Any = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit`."""
        if isinstance(validation_data, tuple | list) and len(validation_data) == 3:
            inputs = validation_data[0]
            validation_data = (inputs, *self.arranged(*validation_data))
        y, sample_weight = self.arranged(x, y, sample_weight)
        return super().fit(
            x,
            y,
            *args,
            sample_weight=sample_weight,
            validation_data=validation_data,
            **kwargs,
        )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        *args: Any,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Evaluates as `keras.Model.evaluate`."""
        y, sample_weight = self.arranged(x, y, sample_weight)
        return super().evaluate(x, y, *args, sample_weight=sample_weight, **kwargs)

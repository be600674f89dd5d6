"""Models whose weights Keras cannot take as they are."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.worker_model import keras_arguments


class WeightsOfRows(ObjectiveModel):
    """Base class: `fit()` and `evaluate()` arrange targets and weights before Keras."""

    def arranged(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Returns targets and weights in a form that Keras takes."""
        raise NotImplementedError(f"{type(self).__name__} has no `arranged`.")

    def fit(
        self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit`."""
        given = keras_arguments("fit", x, y, *args, **kwargs)
        validation = given.get("validation_data")
        if isinstance(validation, tuple | list) and len(validation) == 3:
            given["validation_data"] = (validation[0], *self.arranged(*validation))
        return super().fit(**self._arranged(given))

    def evaluate(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.evaluate`."""
        given = keras_arguments("evaluate", x, y, *args, **kwargs)
        return super().evaluate(**self._arranged(given))

    def _arranged(self, given: dict[str, Any]) -> dict[str, Any]:
        weights = given.get("sample_weight")
        y, weights = self.arranged(given["x"], given["y"], weights)
        return {**given, "y": y, "sample_weight": weights}

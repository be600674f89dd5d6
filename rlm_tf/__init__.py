"""Train language models, and any Keras model, on scarce data with a second model.

    import rlm_tf

    model = rlm_tf.load_model("runs/mine/model.keras")
    rlm_tf.evaluation.evaluate(model, ...)

Importing it takes no time: TensorFlow and Keras are imported with the first package,
`rlm_tf.models` or another, that is used.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from rlm_tf.loading import load_model

__version__ = "0.1.0"

__all__ = ["load_model"]


def __getattr__(name: str) -> Any:
    """Imports a package or module when it is first asked for."""
    module = f"{__name__}.{name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message) from None


def __dir__() -> list[str]:
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted({*globals(), *modules})

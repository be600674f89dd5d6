"""The fixture that hands out objects of all public classes."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from tests.conformance.public_classes import MODELS, ROWS
from tests.conformance.row import Row


def _made(row: Row) -> tuple[Row, Any, np.ndarray]:
    thing = row.make()
    return row, thing, np.array(row.use(thing))


@pytest.fixture(scope="module", params=ROWS, ids=[row.name for row in ROWS])
def made(request) -> tuple[Row, Any, np.ndarray]:
    """A row, its object, and what using it gives."""
    return _made(request.param)


@pytest.fixture(scope="module", params=MODELS, ids=[row.name for row in MODELS])
def made_model(request) -> tuple[Row, keras.Model, np.ndarray]:
    """A row of a model that trains, the model, and what calling it gives."""
    return _made(request.param)

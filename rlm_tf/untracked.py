"""What Keras and TensorFlow are not to look into."""

from __future__ import annotations

from typing import Any


class Untracked:
    """Holds a value in a way that tracking does not look into.

    So a model is held without being a part of the one that holds it: neither its
    weights nor its configuration go into files.

    Attributes:
        value: What is held.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

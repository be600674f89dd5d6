"""What the study runs."""

from __future__ import annotations

# With a mixture; one small model, trained with induced model matching.
ARMS = ("mixture", "alone")
OPTIONS: dict[str, tuple[str, ...]] = {"mixture": (), "alone": ("--nomixture",)}

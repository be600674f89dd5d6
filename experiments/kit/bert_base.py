"""The size of BERT-base (Devlin et al. 2019), uncased: what projections are of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Of `TransformerEncoder`.
BERT_BASE: Mapping[str, Any] = {
    "num_layers": 12,
    "width": 768,
    "num_heads": 12,
    "num_segments": 2,
    "max_length": 512,
    "positions": "absolute",
    "norm": "post",
}
PIECES = 30_522

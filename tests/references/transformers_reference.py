"""Numbers computed two ways for transformers, and plain float64 versions."""

from __future__ import annotations

import json
import math
import pathlib

ORACLE = json.loads(
    pathlib.Path(__file__).with_name("dong_transformers_oracle.json").read_text("utf-8")
)


def t5_bucket(relative: int, num_buckets: int, max_distance: int) -> int:
    """Returns a bucket by rounded logarithms, distances on edges lifted a little."""
    half = num_buckets // 2
    exact = half // 2
    distance = abs(relative)
    if distance < exact:
        found = distance
    else:
        share = math.log(distance / exact) / math.log(max_distance / exact)
        found = min(half - 1, exact + math.floor(share * (half - exact) + 1e-9))
    return found + (half if relative > 0 else 0)


def cocolm_bucket(relative: int, num_buckets: int, max_distance: int) -> int:
    """The same by the rule of COCO-LM."""
    half = num_buckets // 2
    exact = half // 2
    distance = abs(relative)
    found = distance
    if distance >= exact:
        share = math.log(distance / exact) / math.log((max_distance - 1) / exact)
        found = exact + math.ceil(share * (half - 1 - exact) - 1e-9)
    found = min(half - 1, found)
    return -found if relative < 0 else found

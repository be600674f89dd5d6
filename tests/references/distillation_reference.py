"""Numbers computed two ways for distillation."""

from __future__ import annotations

import json
import pathlib

ORACLE = json.loads(
    pathlib.Path(__file__).with_name("dong_distillation_oracle.json").read_text("utf-8")
)

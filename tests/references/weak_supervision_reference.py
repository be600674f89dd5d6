"""Numbers computed two ways for supervision by seed words."""

from __future__ import annotations

import json
import pathlib

ORACLE = json.loads(
    pathlib.Path(__file__)
    .with_name("dong_weak_supervision_oracle.json")
    .read_text("utf-8")
)

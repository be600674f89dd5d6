"""Whether an earlier run was the same as this one."""

from __future__ import annotations

import json
from typing import Any


def check_same_settings(
    found: dict[str, Any], wanted: dict[str, Any], where: str, remedy: str
) -> None:
    """Raises ValueError if an earlier run had other settings or text than this one.

    Args:
        found: The settings of the earlier run, as its files hold them. A digest that
            one side does not know (files of older code, a model that is gone) is not
            compared.
        wanted: Today's; tuples are what files hold as lists.
        where: The file, for the message.
        remedy: What to use instead, for the message.
    """
    wanted = json.loads(json.dumps(wanted))
    unknown = {
        key
        for key in {**found, **wanted}
        if key.endswith("_sha256") and None in (found.get(key), wanted.get(key))
    }
    differing = [
        f"{key} was {found.get(key)!r} and is {wanted.get(key)!r}"
        for key in {**found, **wanted}
        if found.get(key) != wanted.get(key) and key not in unknown
    ]
    if differing:
        raise ValueError(
            f"{where} is of a run with other settings: {'; '.join(differing)}. Use "
            f"{remedy}."
        )

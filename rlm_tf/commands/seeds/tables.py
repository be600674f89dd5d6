"""Tables that `rlm_tf seed_classify` writes."""

from __future__ import annotations

import csv
import io
import pathlib
from collections.abc import Iterable
from typing import Any

from rlm_tf.command_line.written_files import write_beside


def write_csv(path: pathlib.Path, rows: Iterable[Any]) -> None:
    """Writes rows of texts, beside the place and renamed."""
    stream = io.StringIO(newline="")
    plain, quoted = (
        csv.writer(stream, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    for row in rows:
        # The module leaves a lone end of line of old Macs as it is.
        (quoted if any("\r" in cell for cell in row) else plain).writerow(row)
    write_beside(path, stream.getvalue().encode("utf-8", "surrogatepass"))

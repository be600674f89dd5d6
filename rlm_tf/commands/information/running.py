"""One run of `rlm_tf coherence`."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from typing import Any

from rlm_tf.command_line import run_lock
from rlm_tf.command_line.run_folder import claim
from rlm_tf.commands.information import estimating, writing
from rlm_tf.commands.information.settings import CoherenceSettings
from rlm_tf.commands.information.sources import (
    Streams,
    Words,
    of_one_length,
    read_sources,
)

_SETTINGS, _REPORT, _FOLDS = "settings.json", "report.json", "folds"
_FILES = (_REPORT, _FOLDS, "table.md", "information.png")
# Settings that say nothing of what is estimated; words that are read are in the digest.
_NO_SETTINGS = ("output_dir", "data_dir", "resume", "overwrite")


def run(settings: CoherenceSettings) -> None:
    """Estimates what is not estimated yet, and writes the report."""
    folder = pathlib.Path(settings.output_dir)
    with run_lock.held(folder.absolute()):
        _run(settings, folder)


def _run(settings: CoherenceSettings, folder: pathlib.Path) -> None:
    sources = []
    for source in read_sources(settings):
        print(f"{source.name}: {len(source.ids):,} tokens", flush=True)
        sources.append(source)
    streams = of_one_length(sources, settings.max_words)
    estimating.check_lengths(streams, settings.gaps, settings.segment, settings.folds)
    wanted = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in dataclasses.asdict(settings).items()
        if name not in _NO_SETTINGS
    }
    wanted["text_sha256"] = _digest(sources)
    if claim(
        folder / _SETTINGS,
        wanted,
        _FILES,
        result=_REPORT,
        overwrite=settings.overwrite,
        resume=settings.resume,
    ):
        print((folder / "table.md").read_text("utf-8"))
        print(f"done before: {folder / _REPORT} (--overwrite estimates anew)")
        return
    number = len(streams.tokens[0])
    print(
        f"the first {number:,} tokens of each; {streams.num_words:,} words are told "
        f"apart, {100 * streams.unknown:.1f} % of the tokens are others",
        flush=True,
    )
    jobs = estimating.jobs_of(streams, settings.gaps, settings.controls)
    found = [
        *estimating.estimates(
            jobs,
            streams,
            folder / _FOLDS,
            segment=settings.segment,
            folds=settings.folds,
            critic=settings.critic,  # type: ignore[arg-type]
            seed=settings.seed,
        )
    ]
    rows = writing.rows_of(found, number)
    controls = writing.controls_of(found, number)
    table = writing.table_of(rows, controls)
    writing.write(
        folder,
        {
            "rows": rows,
            "controls": controls,
            "settings": wanted,
            "texts": _about(streams),
        },
        table,
        settings.segment,
    )
    print(
        f"\n{table}\n\nNats, of two segments of {settings.segment} tokens; "
        f"± standard error over {settings.folds} folds. The estimate grows with the "
        f"length of a text: compare texts of one length.",
    )
    for line in writing.warnings_of(rows):
        print(f"warning: {line}")
    print(f"\n{folder / _REPORT}\n{folder / 'information.png'}")


def _digest(sources: list[Words]) -> str:
    found = hashlib.sha256()
    for source in sources:
        found.update(source.digest().encode())
    return found.hexdigest()


def _about(streams: Streams) -> dict[str, Any]:
    return {
        "names": streams.names,
        "tokens_before_cutting": streams.lengths,
        "words_told_apart": streams.num_words,
        "share_of_other_words": streams.unknown,
    }

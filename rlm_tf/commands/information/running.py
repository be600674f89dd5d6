"""One run of `rlm_tf coherence`."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pathlib
from typing import Any

from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json
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
# Folds of each gap have a file of their own.
_NO_SETTINGS = ("output_dir", "data_dir", "resume", "overwrite", "gaps")
_REMEDY = "remove it, or say --overwrite"


def run(settings: CoherenceSettings) -> None:
    """Estimates what is not estimated yet, and writes the report."""
    folder = pathlib.Path(settings.output_dir)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(run_lock.held(folder.absolute()))
        except BlockingIOError:
            raise
        except OSError as error:
            raise ValueError(
                f"--output_dir={folder} cannot be written: {error.strerror}."
            ) from error
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
        if _same_gaps(settings, folder / _REPORT):
            print((folder / "table.md").read_text("utf-8"))
            print(f"done before: {folder / _REPORT} (--overwrite estimates anew)")
            return
        # Folds of other gaps stay, and serve again.
        (folder / _REPORT).unlink()
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
            most_steps=settings.most_steps,
        )
    ]
    rows = writing.rows_of(found, number)
    controls = writing.controls_of(found, number)
    warnings = writing.warnings_of(found, number)
    if settings.controls and not any(row["order"] == "sentences" for row in controls):
        warnings.append(
            f"{streams.names[0]}: too few sentences to put them in random order"
        )
    text = "\n\n".join(
        [
            writing.table_of(rows, controls),
            _note(settings, controls),
            *writing.differences_of(found),
            *(f"warning: {line}" for line in warnings),
        ]
    )
    content = {
        "rows": rows,
        "controls": controls,
        "details": writing.details_of(found),
        "warnings": warnings,
        "settings": {**wanted, "gaps": list(settings.gaps)},
        "texts": _about(streams),
    }
    writing.write(folder, content, text, settings.segment)
    print(f"\n{text}\n\n{folder / _REPORT}\n{folder / 'information.png'}")


def _same_gaps(settings: CoherenceSettings, report: pathlib.Path) -> bool:
    """Whether a report is of today's gaps."""
    rows = read_json(report, _REMEDY, ("rows",))["rows"]
    return {row["gap"] for row in rows} == set(settings.gaps)


def _note(settings: CoherenceSettings, controls: list[dict[str, Any]]) -> str:
    """Returns what the table's numbers are."""
    errors = f"± standard error over {settings.folds} folds"
    if controls and controls[0]["folds"] < settings.folds:
        errors += f", of shuffled texts over the first {controls[0]['folds']} of them"
    return (
        f"Nats, of two segments of {settings.segment} tokens; {errors}. The estimate "
        "grows with the length of a text: compare texts of one length."
    )


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

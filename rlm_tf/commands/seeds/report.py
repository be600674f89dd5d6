"""What `rlm_tf seed_classify` reports."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlm_tf.commands.report.page import Page
from rlm_tf.commands.seeds import figures

_CHARACTERS = 300
# What is estimated without true labels, and by what.
_ESTIMATES = (
    ("plain", "by a probe's doubts (confident learning)"),
    ("deletion", "by the same, words deleted as it learns"),
    ("seeds_that_meet", "how seeds that meet agree"),
)


def summary(results: dict[str, Any]) -> list[str]:
    """Returns what is printed in the end."""
    lines = [
        f"{results['labelled']:,} of {results['documents']:,} documents have labels by "
        f"seeds; the classifier says the same of {_percent(results['agreement'])} of "
        "them"
    ]
    if results["settings"].get("threshold"):
        lines.append(
            f"{results['blank']:,} are left blank, less probable than "
            f"{results['settings']['threshold']:g} (--threshold)"
        )
    if "accuracy" in results:
        found = results["accuracy"]
        lines.append(
            f"accuracy, from {found['labels']} labels: {_percent(found['value'])} "
            f"({100 * found['low']:.1f} to {100 * found['high']:.1f}, 95 %)"
        )
    elif results.get("use_labels") == "train":
        lines.append(
            "how good it is, these labels cannot tell, for it has learnt from them: "
            "--use_labels=both"
        )
    else:
        lines.append(
            "how good it is, nobody can tell without labels: label to_label.csv, give "
            "it as --labels"
        )
    return lines


def write(
    folder: pathlib.Path,
    results: dict[str, Any],
    sure: np.ndarray,
) -> None:
    """Writes the report as Markdown and HTML.

    Args:
        folder: Of the run.
        results: What `report.json` has.
        sure: float `[N]`, probabilities of predictions.
    """
    page = Page("A classifier from seed words")
    for line in summary(results):
        page.paragraph(line)
    for line in results["warnings"]:
        page.paragraph(line, warning=True)
    _how_good(page, results)
    _classes(page, results, sure)
    _seeds(page, results)
    _training(page, results)
    _mistakes(page, results)
    page.write(folder)


def _how_good(page: Page, results: dict[str, Any]) -> None:
    page.heading("How good it is")
    rows = []
    found = results["estimates"]
    for name, about in _ESTIMATES:
        value = found.get(name)
        if value is not None:
            rows.append((f"labels by seeds: {about}", value, value, value))
    if "accuracy" in results:
        own = results["accuracy"]
        name = f"predictions: {own['labels']} true labels"
        rows.append((name, own["value"], own["low"], own["high"]))
    if rows:
        page.table(
            [
                ("what is right, and who says so", "share", "95 %"),
                *(
                    (
                        name,
                        _percent(value),
                        f"{100 * low:.1f} to {100 * high:.1f}" if low < high else "",
                    )
                    for name, value, low, high in rows
                ),
            ]
        )
        page.figure("estimates", figures.estimates(rows), "Estimates of what is right")
    page.paragraph(
        "Estimates without true labels may be far off. On four sets of documents that "
        "have them, seeds that meet said from 2 points too much to 20 too little "
        "(experiments/seed_labels); a probe that has learnt the seeds mostly doubts "
        "them too little. They tell which of two lists of seeds is better sooner than "
        "how good one is; "
        f"{found['documents_where_seeds_meet']:,} documents have two seeds or more."
    )
    own = results.get("calibration")
    if own is not None:
        page.paragraph(
            f"Probabilities: expected calibration error {_percent(own['ece'])} on "
            f"these labels; divided by a temperature of {own['temperature']:.2f}, "
            f"logits lose {own['nll_after']:.3f} nats instead of "
            f"{own['nll_before']:.3f}."
        )


def _classes(page: Page, results: dict[str, Any], sure: np.ndarray) -> None:
    page.heading("Classes")
    doubts = results["estimates"].get("by_class") or [None] * len(results["classes"])
    page.table(
        [
            ("class", "labelled by seeds", "right, it seems", "predicted"),
            *(
                (
                    row["name"],
                    f"{row['by_seeds']:,}",
                    "" if right is None else _percent(right),
                    f"{row['predicted']:,}",
                )
                for row, right in zip(results["classes"], doubts, strict=True)
            ),
        ]
    )
    classes, counts = results["classes"], (results["labelled"], results["documents"])
    page.figure("balance", figures.balance(classes, *counts), "Shares of classes")
    page.figure("confidence", figures.confidence(sure), "How sure predictions are")


def _seeds(page: Page, results: dict[str, Any]) -> None:
    page.heading("Seeds")
    page.paragraph(
        "Shares of all documents: that have the seed, another seed too, a seed of "
        "another class too; how many have this seed alone; and of how many of those a "
        "probe that has not seen them says another class."
    )
    page.table(
        [
            ("seed", "class", "documents", "overlaps", "conflicts", "alone", "doubted"),
            *(
                (
                    row["text"],
                    row["class_name"],
                    f"{100 * row['coverage']:.2f} %",
                    f"{100 * row['overlaps']:.2f} %",
                    f"{100 * row['conflicts']:.2f} %",
                    f"{row['labels_alone']:,}",
                    "" if row["doubted"] is None else _percent(row["doubted"]),
                )
                for row in results["seeds"]
            ),
        ]
    )
    if results["conflicts"]:
        page.heading("Seeds of two classes in one document")
        page.table(
            [
                ("seeds", "classes", "documents", "one of them"),
                *(
                    (
                        " + ".join(row["seeds"]),
                        " + ".join(row["classes"]),
                        f"{row['documents']:,}",
                        _short(f"{row['id']}: {row['text']}"),
                    )
                    for row in results["conflicts"]
                ),
            ]
        )
    if results["suggested"]:
        page.heading("Words that may be seeds")
        page.paragraph(
            "In documents that the classifier says to be of a class more than in "
            "others, surest first; how many have the word, and of these have no label."
        )
        by_class: dict[str, list[dict[str, Any]]] = {}
        for row in results["suggested"]:
            by_class.setdefault(row["class_name"], []).append(row)
        page.table(
            [
                ("class", "words (documents, new)"),
                *(
                    (
                        name,
                        ", ".join(
                            f"{row['text']} ({row['documents']:,}, {row['new']:,})"
                            for row in rows
                        ),
                    )
                    for name, rows in by_class.items()
                ),
            ]
        )


def _training(page: Page, results: dict[str, Any]) -> None:
    page.heading("Training on its own predictions")
    shares = ", ".join(_percent(share) for share in results["changes"])
    page.paragraph(f"Predictions that changed in each iteration: {shares or 'none'}.")
    own = results["deletion_effect"]
    if own is not None:
        text = (
            "Without deletion, trained once, the classifier says another class of "
            f"{_percent(own['differ'])} of the documents than with it, and the class "
            f"of the seeds of {_percent(own['follows_plain'])} of the labelled ones, "
            f"not of {_percent(own['follows'])}."
        )
        if "right_plain" in own:
            text += (
                f" Of the {own['labels']} true labels it has {own['right_plain']} "
                f"right, with deletion {own['right']}."
            )
        page.paragraph(text)


def _mistakes(page: Page, results: dict[str, Any]) -> None:
    page.heading("Where seeds and the classifier disagree")
    page.paragraph(
        "Those that the classifier is surest of, and the words that decide it."
    )
    page.table(
        [
            ("document", "by seeds", "said", "probability", "for"),
            *(
                (
                    _short(f"{row['id']}: {row['text']}"),
                    row["by_seeds"],
                    row["said"],
                    f"{row['probability']:.3f}",
                    ", ".join(row["words"]),
                )
                for row in results["doubtful"]
            ),
        ]
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def printable(text: str) -> str:
    """Returns a text that files of UTF-8 hold, and tables read."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _short(text: str) -> str:
    text = " ".join(printable(text).split())
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}..."


def texts_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns rows for `report.json`, their documents' texts cut to what is shown."""
    return [{**row, "text": _short(row["text"])} for row in rows]

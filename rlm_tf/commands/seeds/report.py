"""What `rlm_tf seed_classify` reports."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

from rlm_tf.commands.report.page import Page

_CHARACTERS = 300


def summary(results: dict[str, Any]) -> list[str]:
    """Returns what is printed in the end."""
    lines = [
        f"{results['labelled']:,} of {results['documents']:,} documents have labels by "
        f"seeds; the classifier says the same of {100 * results['agreement']:.1f} % of "
        "them"
    ]
    if "accuracy" in results:
        found = results["accuracy"]
        lines.append(
            f"accuracy, from {found['labels']} labels: {100 * found['value']:.1f} % "
            f"({100 * found['low']:.1f} to {100 * found['high']:.1f}, 95 %)"
        )
    else:
        lines.append(
            "how good it is, nobody can tell without labels: label to_label.csv, give "
            "it as --labels"
        )
    return lines


def write(
    folder: pathlib.Path, results: dict[str, Any], doubtful: Sequence[dict[str, Any]]
) -> None:
    """Writes the report as Markdown and HTML."""
    page = Page("A classifier from seed words")
    for line in summary(results):
        page.paragraph(line)
    for line in results["warnings"]:
        page.paragraph(line, warning=True)
    page.heading("Classes")
    page.table(
        [
            ("class", "labelled by seeds", "predicted"),
            *(
                (row["name"], f"{row['by_seeds']:,}", f"{row['predicted']:,}")
                for row in results["classes"]
            ),
        ]
    )
    page.heading("Seeds")
    page.paragraph(
        "Shares of all documents: that have the seed, another seed too, a seed of "
        "another class too; and how many have this seed alone."
    )
    page.table(
        [
            ("seed", "class", "documents", "overlaps", "conflicts", "alone"),
            *(
                (
                    row["text"],
                    row["class_name"],
                    f"{100 * row['coverage']:.2f} %",
                    f"{100 * row['overlaps']:.2f} %",
                    f"{100 * row['conflicts']:.2f} %",
                    f"{row['labels_alone']:,}",
                )
                for row in results["seeds"]
            ),
        ]
    )
    page.heading("Training on its own predictions")
    shares = ", ".join(f"{100 * share:.1f} %" for share in results["changes"])
    page.paragraph(f"Predictions that changed in each iteration: {shares or 'none'}.")
    page.heading("Where seeds and the classifier disagree")
    page.paragraph("Those that the classifier is surest of.")
    page.table(
        [
            ("document", "by seeds", "said", "probability"),
            *(
                (
                    _short(f"{row['id']}: {row['text']}"),
                    row["by_seeds"],
                    row["said"],
                    f"{row['probability']:.3f}",
                )
                for row in doubtful
            ),
        ]
    )
    page.write(folder)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}..."

"""How good a classifier is, beside simple ones, and the report."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import numpy as np
import scipy.special
from sklearn.metrics import (
    confusion_matrix,
    matthews_corrcoef,
    precision_recall_fscore_support,
)

from rlm_tf.commands.encoders.examples import (
    Examples,
    constant_peer,
    linear_peer,
    score_of,
)
from rlm_tf.commands.report.figures import drawn
from rlm_tf.commands.report.page import Page, markdown_table
from rlm_tf.file_errors import naming

_ERRORS, _CHARACTERS, _MOST_CLASSES = 20, 300, 20


def measure(examples: Examples, outputs: np.ndarray) -> dict[str, Any]:
    """Returns scores of the test texts, of the model and of its peers.

    Args:
        examples: The labelled texts.
        outputs: Of the model for the test texts: logits `[N, C]`, or numbers `[N]`.
    """
    test = examples.test
    peer, constant = linear_peer(examples), constant_peer(examples)
    if test.is_regression:
        return {
            "spearman": score_of(test, outputs),
            "tfidf_spearman": score_of(test, peer.predictions),
            "squared_error": float(np.square(outputs - test.labels).mean()),
            "tfidf_squared_error": float(
                np.square(peer.predictions - test.labels).mean()
            ),
            "mean_squared_error": float(np.square(constant - test.labels).mean()),
            "tfidf": peer.about,
            "examples": len(test),
        }
    probs = scipy.special.softmax(outputs, axis=1)
    said, true = probs.argmax(axis=1), test.labels
    places = np.arange(len(test.names))
    precision, recall, f1, support = precision_recall_fscore_support(
        true, said, labels=places, zero_division=0.0
    )
    difference = (said == true).astype(float) - (peer.predictions == true)
    return {
        "accuracy": score_of(test, said),
        "tfidf_accuracy": score_of(test, peer.predictions),
        "majority_accuracy": score_of(test, constant),
        "ahead_of_tfidf": float(difference.mean()),
        # Of one example there is none.
        "ahead_of_tfidf_error": float(difference.std(ddof=1) / np.sqrt(len(difference)))
        if len(difference) > 1
        else None,
        "macro_f1": float(f1.mean()),
        "matthews": float(matthews_corrcoef(true, said)),
        "tfidf": peer.about,
        "examples": len(test),
        "classes": [
            {
                "name": name,
                "precision": float(precision[i]),
                "recall": float(recall[i]),
                "f1": float(f1[i]),
                "examples": int(support[i]),
            }
            for i, name in enumerate(test.names)
        ],
        "confusion": confusion_matrix(true, said, labels=places).tolist(),
        "errors": _errors(examples, probs),
    }


def summary(results: dict[str, Any]) -> list[str]:
    """Returns the lines that are printed at the end."""
    lines = ["", *markdown_table(_rows(results)), ""]
    line = _verdict(results)
    return [*lines, line] if line else lines


def write(folder: pathlib.Path, results: dict[str, Any]) -> None:
    """Writes report.md and report.html."""
    page = Page(f"A classifier of {results['train']}")
    for line in results["warnings"]:
        page.paragraph(line, warning=True)
    verdict = _verdict(results)
    if verdict:
        page.paragraph(verdict)
    page.heading(f"{results['examples']:,} test texts")
    page.table(_rows(results))
    page.items(
        [
            f"tf-idf: {results['tfidf']}, chosen on the validation texts",
            *results["notes"],
            f"rows of {results['length']} tokens; {100 * results['cut']:.0f} % of the "
            "test texts are longer and cut",
        ]
    )
    if "confusion" in results:
        _write_classes(page, results)
    page.heading("Training")
    page.figure("curve", _curve(results), "Validation texts while training")
    page.items(
        [
            f"encoder: {results['encoder']}",
            f"the weights of epoch {results['best_epoch']} are kept",
            f"{results['parameters']:,} parameters; "
            f"{results['training_seconds'] / 60:.1f} min of training",
        ]
    )
    with naming(folder / "report.html"):
        page.write(folder)


def _rows(results: dict[str, Any]) -> list[tuple[str, ...]]:
    if "spearman" in results:
        return [
            ("test texts", "Spearman's correlation", "squared error"),
            _numbers("encoder", results["spearman"], results["squared_error"]),
            _numbers(
                "tf-idf", results["tfidf_spearman"], results["tfidf_squared_error"]
            ),
            ("mean", "", f"{results['mean_squared_error']:.4g}"),
        ]
    return [
        ("test texts", "right"),
        *(
            (name, f"{100 * results[key]:.1f} %")
            for name, key in (
                ("encoder", "accuracy"),
                ("tf-idf, linear", "tfidf_accuracy"),
                ("most frequent class", "majority_accuracy"),
            )
        ),
    ]


def _numbers(name: str, correlation: float, error: float) -> tuple[str, ...]:
    return name, f"{correlation:.3f}", f"{error:.4g}"


def _verdict(results: dict[str, Any]) -> str | None:
    if "spearman" in results:
        own, peer = results["spearman"], results["tfidf_spearman"]
        if own >= peer:
            return None
        return f"behind tf-idf: a correlation of {own:.3f} against {peer:.3f}"
    ahead, error = results["ahead_of_tfidf"], results["ahead_of_tfidf_error"]
    told = "one example tells nothing"
    if error is not None:
        told = f"standard error {100 * error:.1f} points"
    if ahead < 0:
        return (
            f"behind tf-idf: {-100 * ahead:.1f} points fewer are right ({told}); take "
            "the linear model, or give more --text and --minutes"
        )
    if ahead == 0:
        return f"level with tf-idf ({told})"
    return f"ahead of tf-idf by {100 * ahead:.1f} points ({told})"


def _write_classes(page: Page, results: dict[str, Any]) -> None:
    page.heading("Classes")
    page.table(
        [
            ("class", "precision", "recall", "F1", "examples"),
            *(
                (
                    row["name"],
                    f"{row['precision']:.3f}",
                    f"{row['recall']:.3f}",
                    f"{row['f1']:.3f}",
                    f"{row['examples']:,}",
                )
                for row in results["classes"]
            ),
        ]
    )
    names = [row["name"] for row in results["classes"]]
    page.heading("Confusion")
    if len(names) <= _MOST_CLASSES:
        page.paragraph("Rows are labels, columns what the classifier says.")
        page.table(
            [
                ("", *names),
                *(
                    (name, *(f"{count:,}" for count in row))
                    for name, row in zip(names, results["confusion"], strict=True)
                ),
            ]
        )
    else:
        page.paragraph("The pairs that are mistaken most often.")
        counts = np.array(results["confusion"])
        np.fill_diagonal(counts, 0)
        worst = np.argsort(-counts, axis=None, kind="stable")[:_MOST_CLASSES]
        page.table(
            [
                ("label", "said", "times"),
                *(
                    (names[i], names[j], f"{counts[i, j]:,}")
                    for i, j in zip(*np.unravel_index(worst, counts.shape), strict=True)
                ),
            ]
        )
    page.heading("Mistakes")
    page.paragraph("Those that the classifier was surest of.")
    page.table(
        [
            ("text", "label", "said", "probability"),
            *(
                (row["text"], row["label"], row["said"], f"{row['probability']:.3f}")
                for row in results["errors"]
            ),
        ]
    )


def _errors(examples: Examples, probs: np.ndarray) -> list[dict[str, Any]]:
    test = examples.test
    said = probs.argmax(axis=1)
    sure = probs.max(axis=1)
    wrong = np.flatnonzero(said != test.labels)
    found = []
    for place in wrong[np.argsort(-sure[wrong], kind="stable")][:_ERRORS]:
        text = test.texts[place]
        if test.texts_b is not None:
            text += f" || {test.texts_b[place]}"
        if len(text) > _CHARACTERS:
            text = f"{text[:_CHARACTERS]}..."
        found.append(
            {
                "text": text,
                "label": test.names[test.labels[place]],
                "said": test.names[said[place]],
                "probability": float(sure[place]),
            }
        )
    return found


def _curve(results: dict[str, Any]) -> bytes:
    written, curve = io.BytesIO(), results["curve"]
    epochs = [row["epoch"] + 1 for row in curve]
    name, label = "val_accuracy", "right, validation texts"
    if "spearman" in results:
        name, label = "val_squared_error", "squared error, validation texts"
    with drawn(written) as axes:
        axes.plot(epochs, [row[name] for row in curve], marker="o")
        if results["best_epoch"]:
            axes.axvline(results["best_epoch"], color="#777777", ls=":", label="kept")
            axes.legend(frameon=False)
        axes.set(xlabel="epoch", ylabel=label)
    return written.getvalue()

"""Writes the report of a run."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.report import contents, figures
from rlm_tf.commands.report.page import Page, markdown_table
from rlm_tf.commands.training.results import PROSE, served_of
from rlm_tf.commands.training.vocabularies import NORMALISED
from rlm_tf.data import Corpus
from rlm_tf.file_errors import naming
from rlm_tf.generation.mixture import tempered_mixture
from rlm_tf.generation.stepwise import as_stepwise
from rlm_tf.restricted import KneserNey

_SAMPLES, _SAMPLE_TOKENS = 3, 60
_MOST_PER_WORD = 1e6
# Test tokens whose whole distribution is looked at.
_CALIBRATED_ON = 10_000


def score_rows(scores: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns the cells of the table of results, titles first."""
    titles = (
        "model",
        "valid perplexity",
        "test perplexity",
        "test, per word",
        "valid bits/byte",
        "test bits/byte",
    )
    rows = []
    for name, splits in scores.items():
        valid, test = splits["valid"], splits["test"]
        rows.append(
            (
                name,
                f"{valid['perplexity']:.2f}",
                f"{test['perplexity']:.2f}",
                per_word(test["perplexity_per_word"]),
                f"{valid['bits_per_byte']:.3f}",
                f"{test['bits_per_byte']:.3f}",
            )
        )
    return [titles, *rows]


def per_word(perplexity: float | None) -> str:
    """Returns the perplexity of a word; nothing where there are no words to speak of.

    Scripts without blanks make words of whole sentences.
    """
    if perplexity is None or perplexity > _MOST_PER_WORD:
        return ""
    return f"{perplexity:,.0f}"


def table(scores: dict[str, Any]) -> list[str]:
    """Returns the lines of the table of results."""
    return markdown_table(score_rows(scores))


def write(
    folder: pathlib.Path,
    results: dict[str, Any],
    corpus: Corpus,
    model: keras.Model,
    n_gram: KneserNey,
    log_probs: dict[str, dict[str, np.ndarray]],
    curves: Sequence[list[dict[str, Any]]],
    steps: int,
) -> None:
    """Writes report.md, its figures, and report.html.

    Args:
        folder: Where.
        results: As they are written to results.json.
        corpus: The corpus.
        model: The trained model.
        n_gram: The n-gram model.
        log_probs: By model and split.
        curves: Of each model, the evaluations of its averages in training.
        steps: Of an epoch.
    """
    page = Page(f"Language model of {pathlib.Path(results['text']).name}")
    mu = results["mixture"]["mu"]
    scores, served = results["scores"], served_of(results)
    page.paragraph(_headline(scores, served))
    for line in results["warnings"]:
        page.paragraph(line, warning=True)
    page.heading("Results")
    page.table(score_rows(scores))
    page.items(list(_about_rows(results)))
    page.heading("Choices")
    page.items([*results["notes"], *results["vocabulary"], *results["choices"]])
    page.heading("Training")
    training = results["training"]
    epochs = number_of("epoch", training["epochs"])
    said = f"{epochs} in {training['seconds'] / 60:.1f} min; it ended because"
    if len(curves) > 1:
        said = f"{len(curves)} models, on average {said}, of the last one,"
    page.paragraph(f"{said} {training['ended']}.")
    page.figure(
        "curve",
        figures.curve(curves, steps, scores["n-gram"]["valid"]["perplexity"]),
        "Validation perplexity while training, and that of the n-gram",
    )
    eos, test = corpus.vocabulary.eos_id, corpus.test
    page.heading("Words that cost most")
    page.paragraph(f"Of the test text, under the {PROSE[served]}.")
    costly = contents.costly_words(corpus.vocabulary, test, log_probs[served]["test"])
    page.table(
        [
            ("word", "times", "nats each", "share of the cost"),
            *(
                (
                    found.word,
                    f"{found.times:,}",
                    f"{found.nats:.2f}",
                    f"{100 * found.share:.1f} %",
                )
                for found in costly
            ),
        ]
    )
    page.heading("More text")
    only_counted = results["n_gram"]["only_counted"]
    whole = None if only_counted else log_probs["n-gram"]["test"]
    _add_forecast(page, corpus, n_gram.order, whole)
    page.heading("Calibration")
    stepwise = tempered_mixture(
        as_stepwise(model, None),
        results["temperature"],
        None if mu is None else (n_gram, mu),
        eos,
    )
    reliable = contents.calibration(stepwise, test[:_CALIBRATED_ON], eos)
    page.paragraph(
        f"Expected calibration error of the {PROSE[served]}: "
        f"{100 * reliable.expected_error:.1f} % (the most probable token of "
        f"{len(test[:_CALIBRATED_ON]):,} places of the test text, ten bins)."
    )
    page.figure("calibration", figures.calibration(reliable), "Accuracy by confidence")
    page.heading("Samples")
    page.paragraph(
        f"After nothing, top_p 0.95, seeds 1 to {_SAMPLES}, as the SavedModel's "
        "`generate` gives them."
    )
    for sample in _samples(folder / "saved_model"):
        page.text(sample)
    page.heading("Time and size")
    page.items(
        [
            f"{results['seconds'] / 60:.1f} min in all (of the process that ended it), "
            f"training {training['seconds'] / 60:.1f} min",
            f"{training['parameters']:,} parameters; SavedModel "
            f"{results['saved_model_megabytes']:.1f} MB",
        ]
    )
    with naming(folder / "report.html"):
        page.write(folder)


def _headline(scores: dict[str, Any], served: str) -> str:
    best = scores[served]["test"]
    peer = scores["n-gram"]["test"]
    gain = 100 * (1 - best["bits_per_byte"] / peer["bits_per_byte"])
    word = "fewer" if gain >= 0 else "more"
    return (
        f"The {PROSE[served]} takes {best['bits_per_byte']:.3f} bits per byte of the "
        f"test text, {abs(gain):.1f} % {word} than the n-gram's "
        f"{peer['bits_per_byte']:.3f}."
    )


def _about_rows(results: dict[str, Any]) -> Sequence[str]:
    lines = [
        f"n-gram: Kneser-Ney of order {results['n_gram']['order']}, floor "
        f"{results['n_gram']['floor']:.2g} of the uniform distribution",
        "all rows are scored on all tokens of the same texts; weights, temperature and "
        "rates are tuned on the validation text",
        f"mixture: {results['mixture']['best_mu']:.3f} n-gram",
    ]
    lines += [line for line in results["notes"] if line == NORMALISED]
    if "model, temperature" in results["scores"]:
        lines.append(
            f"temperature: {results['temperature']:.3f}, of the model, in the mixture "
            "and the SavedModel, too"
        )
    if "first model" in results["scores"]:
        lines.append(
            "first model: the first of several, and it with the n-gram, at a "
            "temperature and weight of its own; model: their mean"
        )
    if results["dynamic_rate"] is not None:
        lines.append(
            "dynamic evaluation: the model goes on learning from the text it has "
            f"read (rate {results['dynamic_rate']:g}); not served"
        )
    return lines


def _add_forecast(
    page: Page, corpus: Corpus, order: int, whole: np.ndarray | None
) -> None:
    found = contents.forecast(corpus, corpus.train, order, whole)
    if found is None:
        page.paragraph("The n-gram does not get better with text: no forecast.")
        return
    page.paragraph(
        "What more of the same text would bring the n-gram, by the scaling law "
        "E + B / D^b of its parts; the model is not trained on parts."
        + (" Text that is only counted is left out." if whole is None else "")
    )
    rows = [("tokens", "test bits/byte", "")]
    for tokens, bits, measured in zip(*found, strict=True):
        rows.append((f"{tokens:,}", f"{bits:.3f}", "" if measured else "forecast"))
    page.table(rows)
    page.figure("more_text", figures.more_text(found), "n-gram by amount of text")


def _samples(path: pathlib.Path) -> list[str]:
    with native_silence():
        loaded = tf.saved_model.load(str(path))
    return [
        loaded.generate(
            tf.constant([""]), _SAMPLE_TOKENS, 1.0, 0, 0.95, 0.0, 1.0, 0.0, seed
        )["text"]
        .numpy()[0]
        .decode("utf-8", "replace")
        for seed in range(1, _SAMPLES + 1)
    ]

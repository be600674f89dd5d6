"""What an encoder has learnt: measured beside n-grams, and the report."""

from __future__ import annotations

import io
import math
import pathlib
from typing import Any

import keras
import numpy as np
import scipy.special
import tensorflow as tf

from rlm_tf.commands.encoders.pretraining_plan import Plan, masking
from rlm_tf.commands.report.figures import drawn
from rlm_tf.commands.report.page import Page, markdown_table
from rlm_tf.data import Segments, SpecialIds, Vocabulary
from rlm_tf.data.text.special_tokens import MASK
from rlm_tf.evaluation import TwoSidedNGram
from rlm_tf.file_errors import naming
from rlm_tf.models import Electra, MaskedLanguageModel

# Held-out rows that are measured, and tokens of them that n-grams are.
_MOST_ROWS, _MOST_PLACES = 1024, 5000
_ORDER = 3
# Of the loss of a detector that finds nothing, what is below it.
_LEARNT = 0.99
_EXAMPLES, _SHOWN, _AROUND = 8, 3, 12
# Names of the rows of scores.
_MODEL, _N_GRAM, _UNIGRAM = "encoder", "n-gram of both sides", "frequency"


def measure(
    plan: Plan,
    vocabulary: Vocabulary,
    rows: Segments,
    held: Segments,
    model: keras.Model,
) -> dict[str, Any]:
    """Returns scores of masked words beside those of n-grams, and examples."""
    batches = masking(plan, vocabulary).of_all(held.in_order(plan.batch_size))
    batches = batches.take(-(-_MOST_ROWS // plan.batch_size))
    found = model.evaluate(batches, verbose=0, return_dict=True)
    parts = [[part.numpy() for part in x[:3]] for (x,) in batches]
    tokens, seen, positions = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    places = np.argwhere(positions > 0)
    if len(places) > _MOST_PLACES:
        rng = np.random.default_rng(plan.seed)
        places = places[np.sort(rng.choice(len(places), _MOST_PLACES, replace=False))]
    peer = TwoSidedNGram(rows.tokens, rows.ids, len(vocabulary), order=_ORDER)
    electra = plan.objective == "electra"
    own = (
        (found["generator"], found["generator_accuracy"])
        if electra
        else (found["nll"], found["accuracy"])
    )
    scores = {
        ("generator" if electra else _MODEL): own,
        _N_GRAM: peer.scores(tokens, places, seen),
        _UNIGRAM: peer.unigram_scores(tokens, places),
    }
    predictor = model.generator if electra else model
    return {
        "scores": {
            name: {"cross_entropy": float(loss), "accuracy": float(right)}
            for name, (loss, right) in scores.items()
        },
        "f1": float(found["f1"]) if electra else None,
        "replaced": float(found["replaced"]) if electra else None,
        "discriminator": float(found["discriminator"]) if electra else None,
        "discriminator_of_nothing": (
            _of_nothing(float(found["replaced"]), tokens, held.ids) if electra else None
        ),
        "held_out_rows": len(tokens),
        "held_out_places": len(places),
        "examples": _examples(predictor, vocabulary, tokens, places, held.ids),
        "odd": _odd(model, vocabulary, tokens, held.ids) if electra else [],
    }


def learning_warning(results: dict[str, Any]) -> list[str]:
    """Returns a line where an encoder has learnt next to nothing.

    A detector that knows no more than how many words are replaced; a masked language
    model that knows no more than how frequent words are.
    """
    nothing = results["discriminator_of_nothing"]
    if nothing is None:
        own, frequency = (
            results["scores"][name]["cross_entropy"] for name in (_MODEL, _UNIGRAM)
        )
        if own < _LEARNT * frequency:
            return []
        return [
            f"the encoder knows no more of masked words than how frequent words are "
            f"({own:.2f} nats a word; frequency has {frequency:.2f}), so it has learnt "
            "next to nothing: give it many more --minutes, or more text"
        ]
    if results["discriminator"] < _LEARNT * nothing:
        return []
    return [
        f"the encoder finds no replaced words ({results['discriminator']:.3f} nats a "
        f"word; who knows their share alone has {nothing:.3f}), so it has learnt next "
        "to nothing: take --objective=masked, or many more --minutes"
    ]


def _of_nothing(share: float, tokens: np.ndarray, ids: SpecialIds) -> float:
    """Returns nats a token of a detector that knows what share of words is replaced."""
    words = ~np.isin(tokens, ids)
    of_words = np.mean(words[tokens != ids.padding])
    replaced = share / of_words
    return float(of_words * scipy.special.entr([replaced, 1 - replaced]).sum())


def summary(results: dict[str, Any]) -> list[str]:
    """Returns the lines that are printed at the end."""
    lines = ["", *markdown_table(_rows(results)), ""]
    if results["f1"] is not None:
        lines.append(
            f"replaced words found (held out, its own generator's): F1 "
            f"{results['f1']:.3f}"
        )
    own, peer = (
        next(iter(results["scores"].values()))["cross_entropy"],
        results["scores"][_N_GRAM]["cross_entropy"],
    )
    if own > peer:
        lines.append(
            f"behind the n-gram: {own:.2f} nats a masked word against {peer:.2f}; more "
            "text or more --minutes are needed"
        )
    return lines


def write(folder: pathlib.Path, results: dict[str, Any]) -> None:
    """Writes report.md and report.html."""
    page = Page(f"An encoder of {results['text']}")
    for line in results["warnings"]:
        page.paragraph(line, warning=True)
    for line in summary(results)[len(_rows(results)) + 3 :]:
        page.paragraph(line)
    page.heading("Masked words of held-out text")
    page.table(_rows(results))
    page.items(
        [
            f"{results['held_out_rows']:,} rows; n-grams on "
            f"{results['held_out_places']:,} of their masked tokens",
            f"n-gram: Kneser-Ney of order {_ORDER} from the left and from the right; "
            "it sees what the encoder sees",
        ]
    )
    page.heading("Training")
    page.figure("curve", _curve(results), "Held-out text while training")
    page.items(
        [
            *results["notes"],
            *results["choices"],
            f"{results['parameters']:,} parameters; "
            f"{results['training_seconds'] / 60:.1f} min of training",
        ]
    )
    page.heading("What it would say")
    page.table(
        [
            ("text", "was", "most probable"),
            *(
                (row["text"], row["was"], ", ".join(row["found"]))
                for row in results["examples"]
            ),
        ]
    )
    if results["odd"]:
        page.heading("Words that were exchanged")
        page.paragraph("One word of each line by another; the most suspicious first.")
        page.table(
            [
                ("text", "was", "now", "place of it among suspects"),
                *(
                    (row["text"], row["was"], row["now"], str(row["rank"]))
                    for row in results["odd"]
                ),
            ]
        )
    with naming(folder / "report.html"):
        page.write(folder)


def _rows(results: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("masked words", "nats each", "perplexity", "right")]
    for name, found in results["scores"].items():
        loss = found["cross_entropy"]
        rows.append(
            (
                name,
                f"{loss:.3f}",
                f"{math.exp(min(loss, 50)):,.1f}",
                f"{100 * found['accuracy']:.1f} %",
            )
        )
    return rows


def _examples(
    predictor: MaskedLanguageModel,
    vocabulary: Vocabulary,
    tokens: np.ndarray,
    places: np.ndarray,
    ids: Any,
) -> list[dict[str, Any]]:
    """Returns words that are masked alone, and what is most probable there."""
    words = [
        (row, column)
        for row, column in places
        if _is_word(vocabulary, tokens[row], column)
    ]
    step = max(1, len(words) // _EXAMPLES)
    found = []
    for row, column in words[::step][:_EXAMPLES]:
        shown = tokens[row : row + 1].copy()
        was = shown[0, column]
        shown[0, column] = ids.mask
        logits = predictor.logits_at(
            tf.constant(shown), tf.constant([[0, column]], tf.int64)
        )
        best = tf.math.top_k(logits[0], _SHOWN).indices.numpy()
        found.append(
            {
                "text": _around(vocabulary, shown[0], column, ids),
                "was": vocabulary.decode([was]).strip(),
                "found": [vocabulary.decode([token]).strip() for token in best],
            }
        )
    return found


def _odd(
    model: Electra, vocabulary: Vocabulary, tokens: np.ndarray, ids: Any
) -> list[dict[str, Any]]:
    """Returns rows with a word exchanged, and how suspicious it is among all."""
    rng = np.random.default_rng(0)
    found = []
    words = [i for i, t in enumerate(vocabulary.tokens) if _is_letters(t)]
    for row in tokens[:: max(1, len(tokens) // _EXAMPLES)][:_EXAMPLES]:
        columns = [c for c in range(len(row)) if _is_word(vocabulary, row, c)]
        if not columns or len(words) < 2:
            continue
        column = columns[len(columns) // 2]
        changed = row.copy()
        changed[column] = rng.choice([w for w in words if w != row[column]])
        logits = model(tf.constant(changed[np.newaxis])).numpy()[0].astype(np.float64)
        logits[np.isin(row, (ids.padding, ids.cls, ids.sep))] = -np.inf
        found.append(
            {
                "text": _around(vocabulary, changed, column, ids),
                "was": vocabulary.decode([row[column]]).strip(),
                "now": vocabulary.decode([changed[column]]).strip(),
                "rank": int((logits > logits[column]).sum()) + 1,
            }
        )
    return found


def _is_word(vocabulary: Vocabulary, row: np.ndarray, column: int) -> bool:
    """Whether a piece is a word of its own: the next one begins another."""
    after = row[column + 1] if column + 1 < len(row) else 0
    next_piece = vocabulary.tokens[after]
    return _is_letters(vocabulary.tokens[row[column]]) and not next_piece[:1].isalpha()


def _is_letters(piece: str) -> bool:
    return piece[:1] == "\u2581" and len(piece) > 3 and piece[1:].isalpha()


def _around(vocabulary: Vocabulary, row: np.ndarray, column: int, ids: Any) -> str:
    """Returns the text about a place, with [MASK] where it is masked."""
    parts = []
    for part in (
        row[max(0, column - _AROUND) : column],
        row[column : column + 1],
        row[column + 1 : column + _AROUND + 1],
    ):
        if len(part) == 1 and part[0] == ids.mask:
            parts.append(MASK)
            continue
        kept = part[~np.isin(part, (ids.padding, ids.cls, ids.sep))]
        parts.append(vocabulary.decode(kept).strip())
    return " ".join(filter(None, parts))


def _curve(results: dict[str, Any]) -> bytes:
    written, curve = io.BytesIO(), results["curve"]
    steps = [results["plan"]["look"] * (row["epoch"] + 1) for row in curve]
    name = "val_generator" if results["f1"] is not None else "val_nll"
    with drawn(written) as axes:
        axes.plot(steps, [row[name] for row in curve], marker=".", label="masked words")
        axes.axhline(
            results["scores"][_N_GRAM]["cross_entropy"],
            color="#d1760a",
            ls="--",
            label="n-gram",
        )
        axes.set(xlabel="steps", ylabel="nats a masked word, held out")
        axes.legend(frameon=False, loc="upper center")
        if results["f1"] is not None:
            other = axes.twinx()
            other.plot(
                steps, [row["val_f1"] for row in curve], color="#777777", marker="."
            )
            other.set(ylabel="F1 of replaced words (grey)", ylim=(0, None))
    return written.getvalue()

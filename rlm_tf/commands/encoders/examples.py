"""The labelled texts of `rlm_tf finetune`, and what simple models make of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from rlm_tf.commands.encoders.settings import ClassifierSettings, FinetuneSettings
from rlm_tf.data import LabelledTexts, read_labelled

_TEST, _VALID = 0.2, 0.1
_MOST_TEST, _MOST_VALID = 2000, 1000
# Fewest examples of a part that something can be chosen or judged on.
_LEAST = 4
# Strengths that are tried; parts of words only where there are not too many texts.
_STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_MOST_PARTS = 5000


class Examples(NamedTuple):
    """Labelled texts, parted.

    Attributes:
        train: To learn from.
        valid: To choose on.
        test: To be judged on.
        notes: How they were parted.
    """

    train: LabelledTexts
    valid: LabelledTexts
    test: LabelledTexts
    notes: list[str]

    def digest(self) -> str:
        """Returns a digest of all texts and labels."""
        digest = hashlib.sha256()
        for part in (self.train, self.valid, self.test):
            for text in (*part.texts, *(part.texts_b or ())):
                data = text.encode()
                digest.update(len(data).to_bytes(8, "little"))
                digest.update(data)
            digest.update(part.labels.tobytes())
            digest.update("\n".join(part.names).encode())
        return digest.hexdigest()


def read_examples(settings: FinetuneSettings | ClassifierSettings) -> Examples:
    """Reads the tables that the settings name, and parts them.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a column is missing, a label unknown, there is one class, or
            there are too few examples.
    """
    path = str(settings.train)
    columns: dict[str, Any] = {
        "text_column": settings.text_column,
        "label_column": settings.label_column,
        "text_b_column": settings.text_b_column,
        "regression": settings.regression,
    }
    whole = read_labelled(path, **columns)
    if not settings.regression and len(whole.names) < 2:
        raise ValueError(
            f"{path}: expected labels of two classes at least in the column "
            f"{settings.label_column!r}, found {', '.join(whole.names)}."
        )
    if not settings.regression and len(whole.names) > len(whole) // 2:
        raise ValueError(
            f"{path}: expected some classes in the column {settings.label_column!r}, "
            f"found {len(whole.names)} of {len(whole)} labels to differ; give "
            "--regression if they are numbers."
        )
    notes = [f"examples: {len(whole):,} of {path}"]
    known = None if settings.regression else whole.names
    missing = [name for name in ("test", "valid") if getattr(settings, name) is None]
    least = _LEAST * (1 + len(missing))
    if missing and len(whole) < least:
        flags = " and ".join(f"--{name}" for name in missing)
        raise ValueError(
            f"{path}: {len(whole)} examples are too few to hold some out; expected at "
            f"least {least}, or {flags}."
        )
    train, parts = whole, []
    for name, given, share, most in (
        ("test", settings.test, _TEST, _MOST_TEST),
        ("valid", settings.valid, _VALID, _MOST_VALID),
    ):
        if given is not None:
            part = read_labelled(given, names=known, **columns)
            notes.append(f"{name}: {len(part):,} of {given}")
        else:
            held = min(max(round(share * len(train)), _LEAST), most)
            train, part = train.split(held / len(train), settings.seed)
            notes.append(f"{name}: {len(part):,} of --train, held out by chance")
        parts.append(part)
    test, valid = parts
    seen = set(_rows_of(train))
    for name, part in (("test", test), ("valid", valid)):
        copies = sum(row in seen for row in _rows_of(part))
        if copies:
            notes.append(
                f"{name}: {copies:,} of them are in the training examples, too, letter "
                "by letter: scores of these say little"
            )
    return Examples(train, valid, test, notes)


def _rows_of(part: LabelledTexts) -> list[tuple[str, ...]]:
    """Returns the one or two texts of each example."""
    columns = [each for each in (part.texts, part.texts_b) if each is not None]
    return list(zip(*columns, strict=True))


# === Simple models ===


class Peer(NamedTuple):
    """What a linear model of word counts says of the test texts.

    Attributes:
        predictions: Classes int `[N]`, or numbers `[N]`.
        about: The choices that were best on the validation texts.
    """

    predictions: np.ndarray
    about: str


# Of texts and what is said of them, the more the better.
Score = Callable[[LabelledTexts, np.ndarray], float]


def linear_peer(examples: Examples, score: Score | None = None) -> Peer:
    """Returns what tf-idf and a linear model say, the best on the validation texts.

    Words and pairs of them or, if there are not too many texts, parts of words;
    logistic regression, or ridge regression where labels are numbers.

    Args:
        examples: Of a task.
        score: What the best is by, the more the better; None: `score_of`.
    """
    score = score or score_of
    train, valid, test = examples.train, examples.valid, examples.test
    best, found = -np.inf, Peer(np.zeros(len(test)), "")
    for analyser, vectorisers in _vectorisers(train):
        try:
            matrices = [
                _stacked(vectorisers, part, fit=part is train)
                for part in (train, valid, test)
            ]
        except ValueError:
            # No word at all.
            continue
        for strength in _STRENGTHS:
            if train.is_regression:
                model: Any = Ridge(alpha=1 / strength)
            else:
                model = LogisticRegression(C=strength, max_iter=1000)
            if len(np.unique(train.labels)) < 2 and not train.is_regression:
                continue
            model.fit(matrices[0], train.labels)
            found_score = score(valid, model.predict(matrices[1]))
            if found_score > best:
                best = found_score
                found = Peer(
                    model.predict(matrices[2]), f"{analyser}, strength {strength:g}"
                )
    if not found.about:
        return Peer(constant_peer(examples), "no word was found")
    return found


def constant_peer(examples: Examples) -> np.ndarray:
    """Returns the most frequent class of the training texts, or the mean label."""
    labels = examples.train.labels
    if examples.train.is_regression:
        return np.full(len(examples.test), labels.mean())
    return np.full(len(examples.test), np.bincount(labels).argmax())


def label_units(train: LabelledTexts) -> dict[str, float]:
    """Returns mean and deviation of numbers, as `SequenceClassifier` takes them.

    Nothing of classes; labels that are all one number have a deviation of 1.
    """
    if not train.is_regression:
        return {}
    labels = np.asarray(train.labels, np.float64)
    # Of equal numbers rounding would leave some.
    deviation = float(np.std(labels)) if np.ptp(labels) else 1.0
    return {"label_mean": float(np.mean(labels)), "label_scale": deviation}


def score_of(part: LabelledTexts, predictions: np.ndarray) -> float:
    """Returns accuracy; of numbers Spearman's correlation, 0 for a constant."""
    if not part.is_regression:
        return float((part.labels == predictions).mean())
    if np.ptp(predictions) == 0 or np.ptp(part.labels) == 0:
        return 0.0
    return float(scipy.stats.spearmanr(part.labels, predictions).statistic)


def _vectorisers(
    train: LabelledTexts,
) -> Iterator[tuple[str, list[TfidfVectorizer]]]:
    sides = 1 if train.texts_b is None else 2
    kinds: dict[str, dict[str, Any]] = {
        "words and pairs of words": {"ngram_range": (1, 2)}
    }
    if len(train) <= _MOST_PARTS:
        kinds["parts of words"] = {"analyzer": "char_wb", "ngram_range": (2, 4)}
    for name, options in kinds.items():
        yield (
            name,
            [TfidfVectorizer(sublinear_tf=True, **options) for _ in range(sides)],
        )


def _stacked(
    vectorisers: list[TfidfVectorizer], part: LabelledTexts, fit: bool
) -> scipy.sparse.csr_matrix:
    sides = [part.texts, part.texts_b or []][: len(vectorisers)]
    found = [
        vectoriser.fit_transform(texts) if fit else vectoriser.transform(texts)
        for vectoriser, texts in zip(vectorisers, sides, strict=True)
    ]
    return scipy.sparse.hstack(found).tocsr()

"""Classifiers from seed words on a split of documents, and how good they are."""

from __future__ import annotations

import base64
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import scipy.sparse
import sklearn.metrics
from sklearn.feature_extraction.text import TfidfVectorizer

from experiments.kit.paired import LEAST_PAIRS
from experiments.kit.seed_config import (
    ARMS,
    SeedStudyConfig,
    Training,
    TunedStudyConfig,
)
from experiments.kit.seed_documents import SeedDocuments, read_documents
from rlm_tf.labelling import (
    SeedRule,
    WordList,
    best_deletion_ratio,
    rule_statistics,
    seed_places,
)
from rlm_tf.labelling.seed_tokens import first_words, words_of
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.layers.text.tfidf_bag import inverse_document_frequencies
from rlm_tf.models import (
    SeedOutcome,
    SeedSupervision,
    TextClassifier,
    TextReader,
    word_classifier,
)

# Of each class, per split.
_JUDGED, _HELD_OUT = 0.15, 0.15
# O2U-Net's rate rises and falls: the lowest is this share of the highest.
_CYCLE, _LOWEST = 4, 0.1


class SeedData(NamedTuple):
    """A split of documents, ready to be learnt from.

    Attributes:
        name: Of the set.
        documents: All of them.
        tokens: int32 `[N, T]`.
        reader: What made them.
        pool: bool `[N]`, documents that trainings may see.
        judged: bool `[N]`, of the pool, documents that the authors judge on.
        held_out: bool `[N]`, of no pool.
        labels: By the name of who labels, int `[N]`, -1 of others and outside the pool.
        places: Likewise bool `[N, T]`, seeds of the own label.
        ratio: Best deletion ratio, by the published rule.
        idf: float `[V]`, of words in the pool, which `linear` weighs them by.
    """

    name: str
    documents: SeedDocuments
    tokens: np.ndarray
    reader: TextReader
    pool: np.ndarray
    judged: np.ndarray
    held_out: np.ndarray
    labels: dict[str, np.ndarray]
    places: dict[str, np.ndarray]
    ratio: float
    idf: np.ndarray


def read_split(name: str, config: SeedStudyConfig, seed: int) -> SeedData:
    """Reads a set of documents and draws its split.

    Args:
        name: Of `seed_list.SET_NAMES`.
        config: Settings of what is read.
        seed: Of the split.
    """
    documents = read_documents(name)
    truth = documents.labels
    rng = np.random.default_rng(seed)
    judged = drawn(truth, np.ones(len(truth), bool), _JUDGED, rng)
    held_out = drawn(truth, ~judged, _HELD_OUT / (1 - _JUDGED), rng)
    pool = ~held_out
    seen = [documents.texts[row] for row in np.flatnonzero(pool)]
    reader = TextReader(WordList.build(seen, max_size=config.max_size), config.length)
    published, words = documents.rule("published", "first"), documents.rule()
    matches = published.match(documents.texts)
    labels = {
        "published": np.where(pool, matches.labels, -1),
        "words": np.where(pool, words.match(documents.texts).labels, -1),
    }
    right = labels["published"] == truth
    labels["truth"] = np.where(right, labels["published"], -1)
    tokens = reader.rows(documents.texts).tokens
    # No longer than the longest.
    tokens = tokens[:, : int(np.flatnonzero((tokens != PADDING).any(axis=0))[-1]) + 1]
    places = {
        who: seed_places(words, documents.texts, tokens.shape[1], own)
        for who, own in labels.items()
    }
    return SeedData(
        name,
        documents,
        tokens,
        reader,
        pool,
        judged,
        held_out,
        labels,
        places,
        best_ratio(published, seen, config.length),
        inverse_document_frequencies(tokens[pool], reader.size),
    )


def best_ratio(rule: SeedRule, texts: list[str], length: int) -> float:
    """Returns the share of words to delete, of as much of documents as is read.

    Args:
        rule: Whose labelled documents count.
        texts: Those that trainings may see.
        length: Words of a document that are read.
    """
    read = [first_words(text, length) for text in texts]
    found = rule_statistics(rule, read, rule.match(texts))
    return round(best_deletion_ratio(1, found.indicative.median), 4)


def drawn(
    truth: np.ndarray, among: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Returns a share of each class, half to even, bool `[N]`."""
    found = np.zeros(len(truth), bool)
    for label in range(int(truth.max()) + 1):
        rows = np.flatnonzero(among & (truth == label))
        count = int(np.round(share * len(rows)))
        found[rng.choice(rows, count, replace=False)] = True
    return found


def deletion_of(kind: str | None, ratio: float) -> dict[str, Any] | None:
    """Returns options of `WordDeletion`: of "seeds", "random", or None."""
    if kind == "seeds":
        return {"ratio": 0.0, "seeds": "only"}
    return None if kind is None else {"ratio": ratio}


class CyclicRate(keras.callbacks.Callback):
    """Lets the rate fall in a line and rise at once, every few epochs (O2U-Net).

    Args:
        highest: The rate of the first epoch of a cycle. Not the optimiser's own, which
            has fallen where a killed training goes on.
    """

    def __init__(self, highest: float) -> None:
        super().__init__()
        self._highest = highest

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        part = (epoch % _CYCLE) / max(_CYCLE - 1, 1)
        rate = self._highest * (1 - (1 - _LOWEST) * part)
        self.model.optimizer.learning_rate.assign(rate)


def supervision_of(
    config: SeedStudyConfig,
    data: SeedData,
    seed: int,
    *,
    training: Training | None = None,
    **options: Any,
) -> SeedSupervision:
    """Returns a procedure with the settings of a study.

    Args:
        config: The settings.
        data: The documents.
        seed: Of all trainings.
        training: How classifiers are trained; None: as the settings say, with the
            dropout of their kind.
        **options: Of `SeedSupervision`, in place of the settings'.
    """

    def classifier(own: int) -> TextClassifier:
        return word_classifier(
            config.encoder,  # type: ignore[arg-type]
            data.reader,
            data.documents.class_names,
            idf=data.idf,
            learning_rate=config.rate if training is None else training.rate,
            dropout=None if training is None else training.dropout,
            weight_decay=0.0 if training is None else training.decay,
            seed=own,
        )

    given: dict[str, Any] = {
        "epochs": config.epochs if training is None else training.epochs,
        "batch_size": config.batch_size,
        "fraction": config.fraction,
        "iterations": config.iterations,
        "seed": seed,
        **options,
    }
    return SeedSupervision(classifier, **given)


def run_arm(
    arm: str,
    config: TunedStudyConfig,
    data: SeedData,
    seed: int,
    folder: pathlib.Path | None,
    **options: Any,
) -> tuple[SeedOutcome, np.ndarray]:
    """Trains an arm; returns what came out of the pool, and rows of the pool.

    Args:
        arm: Of `seed_config.ARMS`.
        config: Settings.
        data: The documents.
        seed: Of all trainings.
        folder: Where they are kept.
        **options: Of `SeedSupervision`, in place of the arm's.
    """
    kind = ARMS[arm]
    who = kind.get("labels", "published")
    given: dict[str, Any] = {
        "select": kind["select"],
        "probe_deletion": deletion_of(kind.get("probe"), data.ratio),
        "deletion": deletion_of(kind.get("final"), data.ratio),
        "training": config.training(arm),
        "self_epochs": config.self_epochs,
        "least_steps": config.least_steps,
        **options,
    }
    if kind["select"] == "loss":
        highest = given["training"].rate
        given.setdefault("probe_callbacks", lambda steps: [CyclicRate(highest)])
        # Two cycles at least.
        least = max(2 * _CYCLE, given["training"].epochs)
        given.setdefault("probe_epochs", least)
    rows = np.flatnonzero(data.pool)
    outcome = supervision_of(config, data, seed, **given).fit(
        data.tokens[rows],
        data.labels[who][rows],
        places=data.places[who][rows],
        folder=folder,
    )
    return outcome, rows


# === Judging ===


def scores(truth: np.ndarray, said: np.ndarray) -> dict[str, float]:
    """Returns micro and macro F1, in percent.

    Documents of which nothing is said (-1) count as wrong, not as one more class.
    """
    of = {"micro": None, "macro": np.unique(truth)}
    return {
        average: 100
        * float(
            sklearn.metrics.f1_score(
                truth, said, labels=labels, average=average, zero_division=0
            )
        )
        for average, labels in of.items()
    }


def packed(right: np.ndarray) -> str:
    """Returns booleans as text, a bit each."""
    return f"{len(right)}:{base64.b64encode(np.packbits(right).tobytes()).decode()}"


def unpacked(text: str) -> np.ndarray:
    """Returns what `packed` was given."""
    number, _, bits = text.partition(":")
    raw = np.frombuffer(base64.b64decode(bits), np.uint8)
    return np.unpackbits(raw, count=int(number)).astype(bool)


def of_labels(outcome: SeedOutcome, data: SeedData, arm: str) -> dict[str, Any]:
    """Returns how many labels were learnt from at first, and how many are wrong."""
    rows = np.flatnonzero(data.pool)
    labels = data.labels[ARMS[arm].get("labels", "published")][rows]
    truth = data.documents.labels[rows]
    chosen = outcome.selected
    known = labels >= 0
    found: dict[str, Any] = {
        "labelled": int(known.sum()),
        "noise": float(np.mean(labels[known] != truth[known])),
        "selected": int(chosen.sum()),
        "selected_noise": float(np.mean(labels[chosen] != truth[chosen])),
    }
    sure = outcome.confidence[known]
    right = labels[known] == truth[known]
    if np.isfinite(sure).all() and 0 < right.mean() < 1:
        found["auroc"] = float(sklearn.metrics.roc_auc_score(right, sure))
    return found


def bootstrap_difference(
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Returns the mean difference of accuracies in percent, and its standard error.

    The larger one of two errors: of seeds that are drawn with replacement, each of
    which has its own documents, so that their noise is in it; and of documents that are
    drawn within given seeds, as a few seeds may agree by chance. (Both drawn at once
    would count the noise of documents twice.) Both arms of a seed are judged on the
    same documents. As the spread of few seeds that are drawn again is too small by (n -
    1) / n, the first error is enlarged by the root of that.

    Args:
        first: Of each seed, bool, whether documents are right.
        second: Likewise, of the other arm.
        draws: How many.
        seed: Of the draws.
    """
    differences = [
        a.astype(np.float64) - b.astype(np.float64)
        for a, b in zip(first, second, strict=True)
    ]
    mean = 100 * float(np.mean([each.mean() for each in differences]))
    rng = np.random.default_rng(seed)
    number = len(differences)
    of_documents = [
        np.mean([each[rng.integers(len(each), size=len(each))].mean() for each in own])
        for own in [differences] * draws
    ]
    error = float(np.std(of_documents, ddof=1))
    if number > 1:
        means = np.array([each.mean() for each in differences])
        of_seeds = means[rng.integers(number, size=[draws, number])].mean(axis=1)
        grown = math.sqrt(number / (number - 1))
        error = max(error, grown * float(np.std(of_seeds, ddof=1)))
    return mean, 100 * error


def told_difference(
    own: Sequence[Mapping[str, Any]],
    base: Sequence[Mapping[str, Any]] | None,
    field: str = "right",
) -> str:
    """Returns `mean ± two standard errors` of accuracies less another arm's.

    By `bootstrap_difference` over seeds that both have; in bold where that is not about
    zero, of three seeds or more.

    Args:
        own: Rows with `seed`, and `right` as `packed` makes it.
        base: Likewise, of the other arm; None: there are none.
        field: Where in a row the documents are; rows without it are left out.
    """
    known = {row["seed"]: row for row in base or ()}
    pairs = [
        (unpacked(row[field]), unpacked(known[row["seed"]][field]))
        for row in own
        if field in row and field in known.get(row["seed"], {})
    ]
    return told_pairs(pairs)


def told_pairs(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """Returns `mean ± two standard errors` of pairs of what documents count."""
    if not pairs:
        return ""
    first, second = zip(*pairs, strict=True)
    mean, error = bootstrap_difference(first, second)
    text = f"{mean:+.1f} ± {2 * error:.1f}"
    is_told = len(pairs) >= LEAST_PAIRS and abs(mean) > 2 * error
    return f"**{text}**" if is_told else text


def tfidf(data: SeedData) -> scipy.sparse.csr_matrix:
    """Returns tf-idf of as many words as classifiers read, counted in the pool."""
    vectorizer = TfidfVectorizer(
        analyzer=words_of, sublinear_tf=True, min_df=2, max_features=30_000
    )
    length = data.reader.length
    texts = [first_words(text, length) for text in data.documents.texts]
    vectorizer.fit([texts[row] for row in np.flatnonzero(data.pool)])
    return vectorizer.transform(texts)

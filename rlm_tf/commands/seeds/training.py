"""What `rlm_tf seed_classify` trains."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.encoders.folder import encoder_of, load_encoder
from rlm_tf.commands.seeds.passes import drifted, passes_over
from rlm_tf.commands.seeds.settings import SeedClassifySettings
from rlm_tf.data.labelled.document_batches import compact_tokens
from rlm_tf.host_tensors import host_array, host_tensor
from rlm_tf.labelling import (
    Matches,
    SeedRule,
    WordList,
    best_deletion_ratio,
    rule_statistics,
    seed_pieces,
    seed_places,
)
from rlm_tf.labelling.folds import document_folds
from rlm_tf.labelling.seed_tokens import first_words
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.layers import PooledEncoder
from rlm_tf.layers.text.tfidf_bag import inverse_document_frequencies
from rlm_tf.models import (
    SeedOutcome,
    SeedSupervision,
    TextClassifier,
    TextReader,
    word_classifier,
)
from rlm_tf.models.encoders.other_dropout import with_dropout
from rlm_tf.models.text_classifiers.documents import rows_with_words
from rlm_tf.models.text_classifiers.kinds import KINDS, Kind
from rlm_tf.training import LinearRate

# Of encoders that were trained before.
_ENCODER_RATE, _ENCODER_DROPOUT = 1e-3, 0.1
_WARM_UP = 0.06
# Probes that judge labels, and classifiers that judge true ones.
TRAIN_FOLDS, _JUDGE_FOLDS = 3, 5
# Documents of which a word may be in one alone.
_FEW = 100
# Documents that are cut at once.
_ROWS = 8192


class Prepared(NamedTuple):
    """Documents as a classifier reads them.

    Attributes:
        placed: uint16 or int32 `[N, T]`, T that of the longest: a tensor.
        tokens: The same as an array, which shares its memory.
        places: bool `[N, T]`, seeds of the own label, or of all; None: nobody asks.
        starts: bool `[N, T]`, pieces that begin a word; None: all do.
        has_words: bool `[N]`.
    """

    placed: tf.Tensor
    tokens: np.ndarray
    places: np.ndarray | None
    starts: np.ndarray | None
    has_words: np.ndarray


class Trainer:
    """Trains classifiers of documents, each in a folder of its own.

    Args:
        settings: What was asked for.
        rule: The seeds.
        texts: The documents.
        matches: What the rule says of them.
        folder: Where trainings are kept.

    Attributes:
        ratio: Share of words that is deleted; None: none by number.
        epochs: Of the training on labels.
        self_epochs: Of each on its own predictions.
        prepared: The documents.
        drift: Why the last training on its own predictions does not count; None: it
            does.
    """

    def __init__(
        self,
        settings: SeedClassifySettings,
        rule: SeedRule,
        texts: list[str],
        matches: Matches,
        folder: pathlib.Path,
    ) -> None:
        self.settings = settings
        self.rule = rule
        self.labels = matches.labels
        self.folder = folder
        self.drift: str | None = None
        self._is_of_words = settings.encoder in KINDS
        if self._is_of_words:
            words = WordList.build(
                texts,
                max_size=settings.max_size,
                min_documents=2 if len(texts) > _FEW else 1,
            )
            self.reader = TextReader(words, settings.length)
        else:
            trained = load_encoder(settings.encoder)
            self.reader = TextReader(trained.vocabulary, settings.length)
            self._trained = encoder_of(trained.model)
        self._texts = texts
        self.prepared = self._prepare(texts)
        # Counted once, and not for each training.
        self._idf = None
        if settings.encoder == "linear":
            self._idf = inverse_document_frequencies(
                self.prepared.tokens, self.reader.size
            )
        self.ratio = settings.deletion_ratio
        self.deletion: dict[str, Any] | None = None
        if settings.deletion in ("seeds", "all_seeds"):
            self.deletion, self.ratio = {"ratio": 0.0, "seeds": "only"}, None
        elif settings.deletion == "random":
            if self.ratio is None:
                # Of as much of a document as is read; one word at least.
                read = [
                    first_words(text, settings.length) if label >= 0 else ""
                    for text, label in zip(texts, self.labels, strict=True)
                ]
                found = rule_statistics(rule, read, matches)
                best = best_deletion_ratio(1, max(found.indicative.median, 1.0))
                self.ratio = round(best, 4)
            self.deletion = {"ratio": self.ratio}
        epochs, own = passes_over(
            int((self.labels >= 0).sum()),
            len(texts),
            settings.batch_size,
            self._is_of_words,
        )
        self.epochs = settings.epochs or epochs
        self.self_epochs = settings.epochs or own

    def _prepare(self, texts: list[str]) -> Prepared:
        reader = self.reader
        placed = host_tensor(_rows(reader, texts))
        tokens = host_array(placed)
        length = tokens.shape[1]
        has_words = rows_with_words(tokens, reader.spared)
        deletion = self.settings.deletion
        whose = None if deletion == "all_seeds" else self.labels
        if isinstance(reader.words, WordList):
            places = None
            if deletion in ("seeds", "all_seeds"):
                places = seed_places(self.rule, texts, length, whose)
            return Prepared(placed, tokens, places, None, has_words)
        found = seed_pieces(self.rule, reader.words, tokens, whose)
        return Prepared(placed, tokens, found.places, found.starts, has_words)

    def _seed_places(self, labels: np.ndarray) -> np.ndarray:
        """Returns where seeds of labels are, bool `[N, T]`."""
        tokens, words = self.prepared.tokens, self.reader.words
        if isinstance(words, WordList):
            return seed_places(self.rule, self._texts, tokens.shape[1], labels)
        return seed_pieces(self.rule, words, tokens, labels).places

    def describe(self) -> str:
        """Returns what is going to be trained, in a line."""
        share = (
            "" if self.ratio is None else f", {100 * self.ratio:.1f} % of a document"
        )
        known = "words" if self._is_of_words else "pieces of words"
        return (
            f"{self.reader.size:,} {known}; deleted as it trains: "
            f"{self.settings.deletion}{share}"
        )

    # === Classifiers ===

    def classifier(self, seed: int) -> TextClassifier:
        """Returns a new compiled classifier."""
        settings = self.settings
        if self._is_of_words:
            return word_classifier(
                cast(Kind, settings.encoder),
                self.reader,
                self.rule.class_names,
                idf=self._idf,
                learning_rate=settings.learning_rate,
                seed=seed,
            )
        model = TextClassifier(
            PooledEncoder(with_dropout(self._trained, _ENCODER_DROPOUT, seed=seed)),
            len(self.rule.class_names),
            dropout=_ENCODER_DROPOUT,
            reader=self.reader,
            class_names=self.rule.class_names,
            clip_norm=1.0,
            seed=seed,
        )
        rate = settings.learning_rate or _ENCODER_RATE
        model.compile(keras.optimizers.Adamax(rate, beta_2=0.98, epsilon=1e-6))
        return model

    def _callbacks(self, steps: int) -> list[keras.callbacks.Callback]:
        return [LinearRate(steps, int(_WARM_UP * steps))]

    def _supervision(
        self, iterations: int, deletion: Mapping[str, Any] | None
    ) -> SeedSupervision:
        settings = self.settings
        return SeedSupervision(
            self.classifier,
            select="all",
            deletion=deletion,
            epochs=self.epochs,
            self_epochs=self.self_epochs,
            batch_size=settings.batch_size,
            iterations=iterations,
            callbacks=None if self._is_of_words else self._callbacks,
            seed=settings.seed,
        )

    @property
    def distinct_labelled(self) -> int:
        """How many different documents have labels."""
        tokens = self.prepared.tokens[self.labels >= 0]
        return len({row.tobytes() for row in np.ascontiguousarray(tokens)})

    # === Trainings ===

    def main(self) -> SeedOutcome:
        """Trains on all labels, words deleted, and then on its own predictions.

        Where these lead away from the seeds (`drifted`), the first training counts, and
        `drift` says why.
        """
        iterations = self.settings.iterations
        print(
            f"training: {number_of('epoch', self.epochs)} of labels, then {iterations} "
            f"times {number_of('epoch', self.self_epochs)} of its own predictions, too",
            flush=True,
        )
        return self._fit_unless_it_drifts(self.folder)

    def plain(self) -> SeedOutcome:
        """Trains once without deletion, to be compared with."""
        print("  one training without deletion, to compare", flush=True)
        return self._fit(self._supervision(0, None), self.folder / "plain")

    def judged(self, deletion: Mapping[str, Any] | None, name: str) -> np.ndarray:
        """Returns what probes say of labelled documents that they have not seen."""
        data = self.prepared
        with_what = "words deleted" if deletion else "no words deleted"
        print(f"  {TRAIN_FOLDS} probes that judge labels, {with_what}", flush=True)
        return self._supervision(0, None).cross_fitted(
            data.placed,
            self.labels,
            folds=TRAIN_FOLDS,
            deletion=deletion,
            places=data.places,
            starts=data.starts,
            spared=self.reader.spared,
            folder=self.folder / name,
        )

    def with_labels(self, truth: np.ndarray, digest: str) -> SeedOutcome:
        """Trains as `main`, true labels in place of the rule's where there are some."""
        return self._fit_unless_it_drifts(self.folder / f"labels-{digest}", truth)

    def _fit_unless_it_drifts(
        self, folder: pathlib.Path, truth: np.ndarray | None = None
    ) -> SeedOutcome:
        supervision = self._supervision(self.settings.iterations, self.deletion)
        found = self._fit(supervision, folder, truth)
        self.drift = drifted(found.rounds, self.labels, self.rule.class_names)
        if self.drift is None:
            return found
        # That of the labels alone is there already, and is read.
        return self._fit(self._supervision(0, self.deletion), folder, truth)

    def judged_with_labels(self, truth: np.ndarray, digest: str) -> np.ndarray:
        """Returns predictions for documents with true labels, -1 of others.

        Each is of a classifier that has learnt from the true labels of other folds, but
        not of the document's own.
        """
        tokens = self.prepared.tokens
        distinct = len(np.unique(tokens[truth >= 0], axis=0))
        folds = min(_JUDGE_FOLDS, max(distinct, 2))
        of = document_folds(tokens, truth, folds, seed=self.settings.seed)
        found = np.full(len(truth), -1)
        for fold in range(folds):
            print(f"  judged with labels: {fold + 1} of {folds}", flush=True)
            outcome = self._fit_unless_it_drifts(
                self.folder / f"labels-{digest}" / f"judged{fold}",
                np.where(of == fold, -1, truth),
            )
            rows = np.flatnonzero(of == fold)
            found[rows] = outcome.probs[rows].argmax(axis=1)
        # Of a text without a word nothing is said.
        found[~self.prepared.has_words] = -1
        return found

    def _fit(
        self,
        supervision: SeedSupervision,
        folder: pathlib.Path,
        truth: np.ndarray | None = None,
    ) -> SeedOutcome:
        data, labels, weights = self.prepared, self.labels, None
        places = data.places
        if truth is not None:
            labels = np.where(truth >= 0, truth, labels)
            weights = np.where(truth >= 0, self.settings.label_weight, 1.0)
            if self.settings.deletion == "seeds":
                # Those of the label that is learnt.
                places = self._seed_places(labels)
        return supervision.fit(
            data.placed,
            labels,
            places=places,
            starts=data.starts,
            spared=self.reader.spared,
            weights=weights,
            folder=folder,
        )


def _rows(reader: TextReader, texts: list[str]) -> np.ndarray:
    """Returns documents as rows of ids, in as little memory as that takes."""
    parts = []
    for first in range(0, len(texts), _ROWS):
        tokens = compact_tokens(reader.rows(texts[first : first + _ROWS]).tokens)
        used = np.flatnonzero((tokens != PADDING).any(axis=0))
        parts.append(tokens[:, : int(used[-1]) + 1 if used.size else 1].copy())
    width = max(part.shape[1] for part in parts)
    dtype = np.result_type(*(part.dtype for part in parts))
    found = np.full([len(texts), width], PADDING, dtype)
    first = 0
    for part in parts:
        found[first : first + len(part), : part.shape[1]] = part
        first += len(part)
    return found

"""From seed words to a classifier: label, probe, select, train, train on itself."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import keras
import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_option, check_range
from rlm_tf.labelling.folds import document_folds
from rlm_tf.models.text_classifiers import selecting
from rlm_tf.models.text_classifiers.documents import Documents
from rlm_tf.models.text_classifiers.seed_outcome import SeedOutcome
from rlm_tf.models.text_classifiers.stages import Said, Watch, train
from rlm_tf.models.text_classifiers.text_classifier import TextClassifier
from rlm_tf.training.resumable_batches import ResumableBatches

Make = Callable[[int], TextClassifier]
Callbacks = Callable[[int], Sequence[keras.callbacks.Callback]]
Pool = Literal["refreshed", "accumulated"]
POOLS: tuple[Pool, ...] = ("refreshed", "accumulated")
# Of a pass, so that to begin it takes as long as some of them.
_FEW_STEPS = 1000


class SeedSupervision:
    """Trains a classifier on labels of a rule (Dong 2025, chapter 3).

    A probe is trained on all labelled documents, whose words are deleted at random so
    that it does not learn the rule (`probe_deletion`); labels that it is sure of, on
    the documents as they are, are taken. A new classifier learns from them, and then,
    anew in each of `iterations`, also from its own surest predictions on all other
    documents: a share of 1/R, 2/R, ... 1 of each predicted class.

    `fit` keeps each training in a folder of its own: run again after a kill it goes on
    where it was, and comes to the same numbers.

    Args:
        classifier: Returns a new compiled `TextClassifier` for a seed.
        probe: Likewise, the probe; None: `classifier`.
        select: "all" labels; "confident", by the probe's probability of the label;
            "learning_order", what the probe learns first (LOPS); "loss", by the losses
            after its epochs (O2U-Net).
        fraction: Share that is selected.
        per_class: Whether of each class.
        probe_deletion: Options of `WordDeletion` for the probe; None: no deletion.
        corrupted: Whether it then judges what is left of documents, not all of them.
        deletion: Likewise, for what is trained on selected labels.
        epochs: Of the training on selected labels.
        probe_epochs: Of the probe; None: `epochs`.
        self_epochs: Of each training of `iterations`, which has many more documents
            where labels are few; None: `epochs`.
        least_steps: Of each training: where documents are few there are more epochs,
            so that halving labels does not halve what is learnt from them.
        batch_size: Documents of a batch.
        iterations: R, of self-training.
        last_share: Of the pool that the last iteration learns from; that of the r-th is
            r / R of it.
        pool: Whether what it learns from itself is chosen anew in each iteration
            ("refreshed", as the released code) or is kept ("accumulated").
        stop_below: Self-training ends when fewer than this share of predictions change;
            0: never.
        passes: With dropout, whose mean is the probe's confidence; 1: without.
        callbacks: Returns callbacks of a training of so many steps, such as
            `lambda steps: [LinearRate(steps)]`; None: there are none, and all passes
            over documents may be one epoch.
        probe_callbacks: Likewise, of the probe, such as one with O2U-Net's cyclic rate;
            None: `callbacks`.
        seed: Of all trainings; each has others.

    Raises:
        ValueError: If an option is unknown, or a number out of range.
    """

    def __init__(
        self,
        classifier: Make,
        *,
        probe: Make | None = None,
        select: selecting.Selection = "confident",
        fraction: float = 0.5,
        per_class: bool = True,
        probe_deletion: Mapping[str, Any] | None = None,
        corrupted: bool = False,
        deletion: Mapping[str, Any] | None = None,
        epochs: int = 4,
        probe_epochs: int | None = None,
        self_epochs: int | None = None,
        least_steps: int = 0,
        batch_size: int = 32,
        iterations: int = 5,
        last_share: float = 1.0,
        pool: Pool = "refreshed",
        stop_below: float = 0.0,
        passes: int = 1,
        callbacks: Callbacks | None = None,
        probe_callbacks: Callbacks | None = None,
        seed: int = 0,
    ) -> None:
        name = type(self).__name__
        check_option(name, "select", select, selecting.SELECTIONS)
        check_option(name, "pool", pool, POOLS)
        check_range(name, 0.0, 1.0, fraction=fraction, stop_below=stop_below)
        check_range(name, 0.0, 1.0, last_share=last_share)
        for argument, value, least in (
            ("epochs", epochs, 1),
            ("probe_epochs", epochs if probe_epochs is None else probe_epochs, 1),
            ("self_epochs", epochs if self_epochs is None else self_epochs, 1),
            ("least_steps", least_steps, 0),
            ("batch_size", batch_size, 1),
            ("iterations", iterations, 0),
            ("passes", passes, 1),
            ("seed", seed, 0),
        ):
            check_integer(name, argument, value, least)
        self.classifier = classifier
        self.probe = probe or classifier
        self.select = select
        self.fraction = fraction
        self.per_class = per_class
        self.probe_deletion = probe_deletion
        self.corrupted = corrupted
        self.deletion = deletion
        self.epochs = epochs
        self.probe_epochs = probe_epochs or epochs
        self.self_epochs = self_epochs or epochs
        self.least_steps = least_steps
        self.batch_size = batch_size
        self.iterations = iterations
        self.last_share = last_share
        self.pool = pool
        self.stop_below = stop_below
        self.passes = passes
        self.callbacks = callbacks
        self.probe_callbacks = probe_callbacks or callbacks
        self.seed = seed

    def fit(
        self,
        tokens: npt.ArrayLike,
        labels: npt.ArrayLike,
        *,
        places: npt.ArrayLike | None = None,
        starts: npt.ArrayLike | None = None,
        spared: Collection[int] = (),
        weights: npt.ArrayLike | None = None,
        probe_tokens: npt.ArrayLike | None = None,
        folder: str | pathlib.Path | None = None,
    ) -> SeedOutcome:
        """Runs the procedure on documents.

        Args:
            tokens: int `[N, T]`, see `TextReader.rows`.
            labels: int `[N]`, those of the rule; -1: none.
            places: bool `[N, T]`, where seeds are (`labelling.seed_places`).
            starts: bool `[N, T]`, pieces that begin a word; None: words are tokens.
            spared: Ids that are no words (`TextReader.spared`).
            weights: float `[N]`, of documents with labels in the loss; None: all alike.
            probe_tokens: int `[N, T]`, what the probe learns from in place of `tokens`,
                which it judges all the same: documents with other words
                (`replace_words`, paraphrases), and no `probe_deletion` then; None:
                `tokens`.
            folder: Where trainings are kept, so that a killed run goes on; None: they
                are not.

        Raises:
            ValueError: If shapes do not fit, no document has a label, or the folder is
                of other documents or settings.
        """
        data = Documents.checked(
            f"{type(self).__name__}.fit",
            tokens,
            labels,
            places=places,
            starts=starts,
            spared=spared,
            weights=weights,
        )
        if probe_tokens is not None and np.shape(probe_tokens)[:1] != data.labels.shape:
            raise ValueError(
                f"{type(self).__name__}.fit: `probe_tokens` must be as many rows as "
                f"`tokens`, {len(data.labels)}, found {np.shape(probe_tokens)}."
            )
        place = None if folder is None else pathlib.Path(folder)
        confidence = np.full(len(data.labels), np.nan)
        labelled = np.flatnonzero(data.labels >= 0)
        losses = None
        if self.select == "all":
            selected = data.labels >= 0
        else:
            learnt = data
            if probe_tokens is not None:
                learnt = data.with_tokens(probe_tokens)
            said = self._probe(data, learnt, labelled, place)
            scores, chosen = selecting.selected_by(
                said, data.labels[labelled], self.select, self.fraction, self.per_class
            )
            confidence[labelled] = scores
            losses = np.full([len(said.losses), len(data.labels)], np.nan)
            losses[:, labelled] = said.losses
            selected = np.zeros(len(data.labels), bool)
            selected[labelled[chosen]] = True
        rows = np.flatnonzero(selected)
        model, said = self._train(data, rows, data.labels[rows], 1, place)
        rounds = [said.probs.argmax(axis=1)]
        # Of a text without a word nothing is said.
        others = ~selected & data.has_words()
        kept = np.full(len(data.labels), -1)
        for iteration in range(1, self.iterations + 1):
            share = self.last_share * iteration / self.iterations
            own = selecting.own_labels(said.probs, others, share)
            if self.pool == "accumulated":
                own = np.where(kept >= 0, kept, own)
                kept = own
            more = np.flatnonzero(own >= 0)
            model, said = self._train(
                data,
                np.concatenate([rows, more]),
                np.concatenate([data.labels[rows], own[more]]),
                1 + iteration,
                place,
            )
            rounds.append(said.probs.argmax(axis=1))
            if np.mean(rounds[-1] != rounds[-2]) < self.stop_below:
                break
        return SeedOutcome(
            model,
            said.probs.astype(np.float32),
            selected,
            confidence,
            np.array(rounds, np.int32),
            losses,
        )

    def cross_fitted(
        self,
        tokens: npt.ArrayLike,
        labels: npt.ArrayLike,
        *,
        folds: int = 3,
        deletion: Mapping[str, Any] | None = None,
        places: npt.ArrayLike | None = None,
        starts: npt.ArrayLike | None = None,
        spared: Collection[int] = (),
        folder: str | pathlib.Path | None = None,
    ) -> np.ndarray:
        """Returns what probes say of documents that they have not learnt from.

        Args:
            tokens: int `[N, T]`.
            labels: int `[N]`, those of the rule; -1: none.
            folds: Probes, each trained on the labelled documents of all folds but one;
                equal documents are in one fold.
            deletion: Options of `WordDeletion`; None: no deletion.
            places: See `fit`.
            starts: See `fit`.
            spared: See `fit`.
            folder: See `fit`.

        Returns:
            Probabilities, float32 `[N, C]`; nan of documents without a label, and of
            those whose label no document of another fold has.

        Raises:
            ValueError: If shapes do not fit, or fewer different documents have labels
                than there are folds.
        """
        data = Documents.checked(
            f"{type(self).__name__}.cross_fitted",
            tokens,
            labels,
            places=places,
            starts=starts,
            spared=spared,
        )
        of = document_folds(data.tokens, data.labels, folds, seed=self.seed)
        found = None
        for fold in range(folds):
            rows = np.flatnonzero((of >= 0) & (of != fold))
            out = np.flatnonzero(of == fold)
            seed, wanted = self._seed(fold), self.probe_epochs
            batches, epochs, others = self._batches(
                data,
                rows,
                data.labels[rows],
                seed,
                deletion,
                wanted,
                self.probe_callbacks,
            )
            _, said = train(
                functools.partial(self.probe, seed),
                batches,
                epochs,
                data.tokens[out],
                None if folder is None else pathlib.Path(folder) / f"fold{fold}",
                others=others,
            )
            if found is None:
                shape = [len(data.labels), said.probs.shape[1]]
                found = np.full(shape, np.nan, np.float32)
            found[out] = said.probs
            # Whoever has never seen a class cannot judge it.
            unknown = ~np.isin(data.labels[out], data.labels[rows])
            found[out[unknown]] = np.nan
        assert found is not None
        return found

    # === Parts ===

    def _probe(
        self,
        data: Documents,
        learnt: Documents,
        labelled: np.ndarray,
        folder: pathlib.Path | None,
    ) -> Said:
        """Returns what a probe says that was trained on all labels."""
        tokens, labels = data.tokens[labelled], data.labels[labelled]
        seed = self._seed(0)
        if self.corrupted and self.probe_deletion is not None:
            tokens = data.corrupted(labelled, seed, self.probe_deletion)
        batches, epochs, others = self._batches(
            learnt,
            labelled,
            labels,
            seed,
            self.probe_deletion,
            self.probe_epochs,
            self.probe_callbacks,
            is_watched=True,
        )
        _, said = train(
            functools.partial(self.probe, seed),
            batches,
            epochs,
            tokens,
            None if folder is None else folder / "probe",
            watch=Watch(tokens, labels),
            passes=self.passes,
            others=others,
        )
        return said

    def _train(
        self,
        data: Documents,
        rows: np.ndarray,
        labels: np.ndarray,
        number: int,
        folder: pathlib.Path | None,
    ) -> tuple[TextClassifier, Said]:
        seed = self._seed(number)
        wanted = self.epochs if number == 1 else self.self_epochs
        batches, epochs, others = self._batches(
            data, rows, labels, seed, self.deletion, wanted, self.callbacks
        )
        return train(
            functools.partial(self.classifier, seed),
            batches,
            epochs,
            data.tokens,
            None if folder is None else folder / f"training{number}",
            others=others,
        )

    def _batches(
        self,
        data: Documents,
        rows: np.ndarray,
        labels: np.ndarray,
        seed: int,
        deletion: Mapping[str, Any] | None,
        wanted: int,
        callbacks: Callbacks | None,
        *,
        is_watched: bool = False,
    ) -> tuple[ResumableBatches, int, Sequence[keras.callbacks.Callback]]:
        """Returns batches, how many epochs of them, and callbacks.

        Where nobody asks after each pass, several are one epoch: to begin one takes a
        third of a second.
        """
        steps = -(-len(rows) // self.batch_size)
        epochs = max(wanted, -(-self.least_steps // steps))
        is_one = not is_watched and callbacks is None and steps < _FEW_STEPS
        passes, epochs = (epochs, 1) if is_one else (1, epochs)
        own = data.batches(rows, labels, self.batch_size, seed, deletion, passes)
        return own, epochs, callbacks(epochs * own.steps) if callbacks else ()

    def _seed(self, number: int) -> int:
        return 1000 * self.seed + number

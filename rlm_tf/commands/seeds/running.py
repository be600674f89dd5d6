"""`rlm_tf seed_classify`, from documents and seed words to the report."""

from __future__ import annotations

import csv
import dataclasses
import io
import pathlib
from typing import Any

import keras
import numpy as np

from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.run_folder import claim, remove_all
from rlm_tf.command_line.wording import number_of
from rlm_tf.command_line.written_files import write_beside
from rlm_tf.commands.seeds import report
from rlm_tf.commands.seeds.reading import Corpus, read_corpus, read_labels, read_rule
from rlm_tf.commands.seeds.settings import RESULTS, SETTINGS, SeedClassifySettings
from rlm_tf.file_errors import naming
from rlm_tf.labelling import (
    Matches,
    SeedRule,
    ToLabel,
    WordList,
    accuracy_from_labels,
    best_deletion_ratio,
    choose_to_label,
    rule_statistics,
    seed_places,
    seed_statistics,
)
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.layers import TfidfBag
from rlm_tf.models import SeedOutcome, SeedSupervision, TextClassifier, TextReader
from rlm_tf.serving import export_text_classifier

_TRAININGS, _MODEL, _SAVED_MODEL = "trainings", "model.keras", "saved_model"
_PREDICTIONS, _TO_LABEL = "predictions.csv", "to_label.csv"
_FILES = (
    *(_TRAININGS, _MODEL, _SAVED_MODEL, _PREDICTIONS, _TO_LABEL, RESULTS),
    *("report.md", "report.html", "report_files"),
)
# Passes, and steps of the labelled documents, at least; passes at most.
_EPOCHS, _STEPS, _MOST_EPOCHS = 8, 400, 100
# Settings that say nothing of what is trained.
_NO_SETTINGS = ("output_dir", "resume", "overwrite", "labels", "to_label")


def run(settings: SeedClassifySettings) -> None:
    """Trains, exports and reports, or goes on where a run was ended."""
    folder = pathlib.Path(str(settings.output_dir))
    with run_lock.held(folder.absolute()):
        Run(settings, folder).run()


class Run:
    """A run in its folder.

    Args:
        settings: What was asked for.
        folder: Where everything is written.
    """

    def __init__(self, settings: SeedClassifySettings, folder: pathlib.Path) -> None:
        self.settings = settings
        self.folder = folder
        self.warnings: list[str] = []

    def run(self) -> None:
        """Does what is not done yet."""
        settings = self.settings
        print(f"{settings.texts} -> {self.folder}", flush=True)
        rule = read_rule(str(settings.seed_words))
        corpus = read_corpus(settings)
        truth = None
        if settings.labels is not None:
            truth = read_labels(settings.labels, corpus, rule.class_names)
        self._claim(rule, corpus)
        matches = rule.match(corpus.texts)
        self._look(rule, matches)
        tokens, outcome, ratio = self._train(rule, corpus, matches)
        self._finish(rule, corpus, matches, tokens, outcome, ratio, truth)

    def _claim(self, rule: SeedRule, corpus: Corpus) -> None:
        given = dataclasses.asdict(self.settings)
        wanted = {name: given[name] for name in given if name not in _NO_SETTINGS}
        wanted["text_sha256"] = corpus.digest
        seeds: dict[str, list[str]] = {name: [] for name in rule.class_names}
        for own in rule.seeds:
            seeds[rule.class_names[own.class_index]].append(own.text)
        wanted["seeds"] = seeds
        claim(
            self.folder / SETTINGS,
            wanted,
            _FILES,
            result=RESULTS,
            overwrite=self.settings.overwrite,
            resume=self.settings.resume,
        )
        # What is measured may be asked for anew, with labels; trainings are kept.
        remove_all(self.folder, (RESULTS,))

    def _look(self, rule: SeedRule, matches: Matches) -> None:
        """Says what the rule does, and stops where it does nothing.

        Raises:
            ValueError: If no document, or of a class none, has a label.
        """
        hits = np.asarray((matches.hits > 0).sum(axis=0)).ravel()
        dead = [seed.text for seed, n in zip(rule.seeds, hits, strict=True) if not n]
        if dead:
            self.warnings.append(f"no document has the seeds {', '.join(dead)}")
        for text, names in rule.shared_seeds.items():
            self.warnings.append(f"{text!r} is a seed of {' and '.join(names)}")
        counts = np.bincount(
            matches.labels[matches.labels >= 0], minlength=len(rule.class_names)
        )
        empty = [
            name for name, n in zip(rule.class_names, counts, strict=True) if not n
        ]
        if empty:
            raise ValueError(
                f"--seed_words={self.settings.seed_words}: no document is labelled "
                f"{', '.join(empty)}: give seeds that documents have."
            )
        labelled = int(counts.sum())
        shares = zip(rule.class_names, counts, strict=True)
        print(
            f"  {len(matches.labels):,} documents, {labelled:,} labelled by seeds: "
            + ", ".join(f"{name} {count:,}" for name, count in shares)
            + f"; {int(matches.tied.sum()):,} ties have no label",
            flush=True,
        )

    def _train(
        self, rule: SeedRule, corpus: Corpus, matches: Matches
    ) -> tuple[np.ndarray, SeedOutcome, float | None]:
        settings = self.settings
        words = WordList.build(corpus.texts, max_size=settings.max_size)
        reader = TextReader(words, settings.length)
        tokens = reader.rows(corpus.texts).tokens
        places = seed_places(rule, corpus.texts, settings.length, matches.labels)
        options: dict[str, Any] | None = None
        ratio = settings.deletion_ratio
        if settings.deletion == "seeds":
            options, ratio = {"ratio": 0.0, "seeds": "only"}, None
        elif settings.deletion == "random":
            if ratio is None:
                found = rule_statistics(rule, corpus.texts, matches)
                ratio = round(best_deletion_ratio(1, found.indicative.median), 4)
            options = {"ratio": ratio}
        print(
            f"  {len(words.words):,} words; deleted as it trains: {settings.deletion}"
            + ("" if ratio is None else f", {100 * ratio:.1f} % of a document"),
            flush=True,
        )

        def classifier(seed: int) -> TextClassifier:
            bag = TfidfBag(reader.size, len(rule.class_names), seed=seed)
            bag.adapt(tokens)
            model = TextClassifier(
                bag,
                len(rule.class_names),
                head=False,
                reader=reader,
                class_names=rule.class_names,
                seed=seed,
            )
            model.compile(keras.optimizers.Adam(settings.learning_rate))
            return model

        labelled = int((matches.labels >= 0).sum())
        epochs = settings.epochs
        if epochs is None:
            steps = -(-labelled // settings.batch_size)
            epochs = min(max(_EPOCHS, -(-_STEPS // steps)), _MOST_EPOCHS)
        supervision = SeedSupervision(
            classifier,
            select="all",
            deletion=options,
            epochs=epochs,
            batch_size=settings.batch_size,
            iterations=settings.iterations,
            seed=settings.seed,
        )
        print(
            f"training: 1 + {settings.iterations} times {number_of('epoch', epochs)}",
            flush=True,
        )
        outcome = supervision.fit(
            tokens, matches.labels, places=places, folder=self.folder / _TRAININGS
        )
        return tokens, outcome, ratio

    # === After training ===

    def _finish(
        self,
        rule: SeedRule,
        corpus: Corpus,
        matches: Matches,
        tokens: np.ndarray,
        outcome: SeedOutcome,
        ratio: float | None,
        truth: np.ndarray | None,
    ) -> None:
        settings, names = self.settings, rule.class_names
        labels = outcome.probs.argmax(axis=1)
        # Of a text without a word nothing is said.
        labels[(tokens == PADDING).all(axis=1)] = -1
        sure = outcome.probs.max(axis=1)
        chosen = choose_to_label(sure, settings.to_label, seed=settings.seed)
        self._write_tables(corpus, matches, names, labels, sure, chosen)
        with naming(self.folder / _MODEL):
            outcome.model.save(self.folder / _MODEL)
        with native_silence():
            export_text_classifier(
                outcome.model, self.folder / _SAVED_MODEL, rule=rule, overwrite=True
            )
        known = matches.labels >= 0
        results: dict[str, Any] = {
            "documents": len(corpus.texts),
            "labelled": int(known.sum()),
            "tied": int(matches.tied.sum()),
            "agreement": float(np.mean(labels[known] == matches.labels[known])),
            "deletion_ratio": ratio,
            "classes": [
                {
                    "name": name,
                    "by_seeds": int((matches.labels == number).sum()),
                    "predicted": int((labels == number).sum()),
                }
                for number, name in enumerate(names)
            ],
            "seeds": [own._asdict() for own in seed_statistics(rule, matches)],
            "changes": [
                float(np.mean(a != b))
                for a, b in zip(outcome.rounds[1:], outcome.rounds[:-1], strict=True)
            ],
            "warnings": self.warnings,
            "settings": dataclasses.asdict(settings),
        }
        if truth is not None:
            results["accuracy"] = _accuracy(labels, truth, chosen)
        report.write(self.folder, results, _doubtful(corpus, matches, names, outcome))
        write_json(self.folder / RESULTS, results)
        for line in report.summary(results):
            print(line)
        for line in self.warnings:
            print(f"warning: {line}")
        print(f"predictions: {self.folder / _PREDICTIONS}")
        print(f"report: {self.folder / 'report.html'}")
        print(f"serve: {self.folder / _SAVED_MODEL}")

    def _write_tables(
        self,
        corpus: Corpus,
        matches: Matches,
        names: tuple[str, ...],
        labels: np.ndarray,
        sure: np.ndarray,
        chosen: ToLabel,
    ) -> None:
        called = np.array([*names, ""])
        rows = zip(
            corpus.ids,
            called[labels],
            (f"{share:.4f}" for share in sure),
            called[matches.labels],
            strict=True,
        )
        header = ("id", "label", "probability", "seed_label")
        _write_csv(self.folder / _PREDICTIONS, [header, *rows])
        own = [(corpus.ids[row], corpus.texts[row]) for row in chosen.indices.tolist()]
        _write_csv(self.folder / _TO_LABEL, [("id", "text"), *own])


def _accuracy(
    labels: np.ndarray, truth: np.ndarray, chosen: ToLabel
) -> dict[str, float]:
    """Returns the estimate from what a person has labelled."""
    rows = np.flatnonzero(truth >= 0)
    right = labels[rows] == truth[rows]
    strata = dict(zip(chosen.indices.tolist(), chosen.strata.tolist(), strict=True))
    of = np.array([strata.get(row, -1) for row in rows.tolist()])
    drawn = np.bincount(of[of >= 0], minlength=len(chosen.stratum_sizes))
    if len(rows) and (of >= 0).all() and (drawn > 0).all():
        found = accuracy_from_labels(right, of, chosen.stratum_sizes)
    else:
        # Others than those of to_label.csv, or not all of its strata: a simple sample.
        found = accuracy_from_labels(right, np.zeros(len(rows), int), [len(labels)])
    return {"labels": len(rows), **found._asdict()}


def _doubtful(
    corpus: Corpus,
    matches: Matches,
    names: tuple[str, ...],
    outcome: SeedOutcome,
    most: int = 20,
) -> list[dict[str, Any]]:
    """Returns documents whose seeds say another class than the classifier surely."""
    said, sure = outcome.probs.argmax(axis=1), outcome.probs.max(axis=1)
    wrong = np.flatnonzero((matches.labels >= 0) & (said != matches.labels))
    worst = wrong[np.argsort(-sure[wrong], kind="stable")][:most]
    return [
        {
            "id": corpus.ids[row],
            "text": corpus.texts[row],
            "by_seeds": names[matches.labels[row]],
            "said": names[said[row]],
            "probability": float(sure[row]),
        }
        for row in worst.tolist()
    ]


def _write_csv(path: pathlib.Path, rows: list[Any]) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows(rows)
    write_beside(path, stream.getvalue().encode("utf-8", "surrogatepass"))

"""`rlm_tf seed_classify`, from documents and seed words to the report."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.run_folder import claim, remove_all
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.encoders.folder import encoder_digest
from rlm_tf.commands.seeds import estimating, looking, report
from rlm_tf.commands.seeds.reading import Corpus, read_corpus, read_labels, read_rule
from rlm_tf.commands.seeds.settings import (
    KINDS,
    RESULTS,
    SETTINGS,
    SeedClassifySettings,
)
from rlm_tf.commands.seeds.tables import write_csv
from rlm_tf.commands.seeds.training import TRAIN_FOLDS, Trainer
from rlm_tf.file_errors import naming
from rlm_tf.labelling import Matches, SeedRule
from rlm_tf.labelling.rule_statistics import english_stop_words
from rlm_tf.models import SeedOutcome
from rlm_tf.serving import export_text_classifier

_TRAININGS, _MODEL, _SAVED_MODEL = "trainings", "model.keras", "saved_model"
_PREDICTIONS, _TO_LABEL = "predictions.csv", "to_label.csv"
_FILES = (
    *(_TRAININGS, _MODEL, _SAVED_MODEL, _PREDICTIONS, _TO_LABEL, RESULTS),
    *("report.md", "report.html", "report_files"),
)
# True labels that classifiers learn from and are judged by, at least.
_LEAST_JUDGED = 10
# Settings that say nothing of what is trained.
_NO_SETTINGS = (
    *("output_dir", "resume", "overwrite"),
    *("labels", "to_label", "use_labels", "label_weight", "threshold"),
)


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
        matches = rule.match(corpus.texts)
        self._look(rule, corpus, matches, truth)
        self._claim(rule, corpus)
        trainer = Trainer(
            settings, rule, corpus.texts, matches, self.folder / _TRAININGS
        )
        print(f"  {trainer.describe()}", flush=True)
        self._finish(rule, corpus, matches, trainer, truth)

    def _claim(self, rule: SeedRule, corpus: Corpus) -> None:
        given = dataclasses.asdict(self.settings)
        wanted = {name: given[name] for name in given if name not in _NO_SETTINGS}
        wanted["text_sha256"] = corpus.digest
        defaults: dict[str, Any] = {}
        if self.settings.encoder not in KINDS:
            # What is in the folder now; of earlier versions nobody knows.
            wanted["encoder_sha256"] = encoder_digest(self.settings.encoder)
            defaults["encoder_sha256"] = wanted["encoder_sha256"]
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
            defaults=defaults,
        )
        # What is measured may be asked for anew, with labels; trainings are kept.
        remove_all(self.folder, (RESULTS,))

    def _look(
        self,
        rule: SeedRule,
        corpus: Corpus,
        matches: Matches,
        truth: np.ndarray | None,
    ) -> None:
        """Says what the rule does, and stops where it does nothing.

        Raises:
            ValueError: If no document, or of a class none, has a label, or too few have
                true ones.
        """
        if truth is not None and not (truth >= 0).any():
            raise ValueError(
                f"--labels={self.settings.labels}: no document has a label; fill in "
                "the column `label`."
            )
        if truth is not None and self.settings.use_labels == "both":
            rows = np.flatnonzero(truth >= 0).tolist()
            given = len({corpus.texts[row] for row in rows})
            if given < _LEAST_JUDGED:
                raise ValueError(
                    f"--labels={self.settings.labels}: --use_labels=both needs labels "
                    f"of {_LEAST_JUDGED} different documents at least, found {given}."
                )
        hits = np.asarray((matches.hits > 0).sum(axis=0)).ravel()
        dead = [seed.text for seed, n in zip(rule.seeds, hits, strict=True) if not n]
        if dead:
            self.warnings.append(f"no document has the seeds {', '.join(dead)}")
        stops = english_stop_words()
        plain = [
            seed.text
            for seed in rule.seeds
            if seed.tokens and not seed.is_prefix and {*seed.tokens} <= {*stops}
        ]
        if plain:
            named = ", ".join(dict.fromkeys(plain))
            self.warnings.append(f"stop words tell no class: {named}")
        for text, names in rule.shared_seeds.items():
            self.warnings.append(f"{text!r} is a seed of {' and '.join(names)}")
        counts = np.bincount(
            matches.labels[matches.labels >= 0], minlength=len(rule.class_names)
        )
        empty = [
            name for name, n in zip(rule.class_names, counts, strict=True) if not n
        ]
        if empty:
            for line in self.warnings:
                print(f"warning: {line}")
            raise ValueError(
                f"--seed_words={self.settings.seed_words}: no document is labelled "
                f"{', '.join(empty)}: {self._why_none(rule, matches, empty)}"
            )
        labelled = int(counts.sum())
        shares = zip(rule.class_names, counts, strict=True)
        print(
            f"  {len(matches.labels):,} documents, {labelled:,} labelled by seeds: "
            + ", ".join(f"{name} {count:,}" for name, count in shares)
            + f"; {int(matches.tied.sum()):,} ties have no label",
            flush=True,
        )

    def _why_none(self, rule: SeedRule, matches: Matches, names: Sequence[str]) -> str:
        """Returns what is wrong with seeds of classes that no document is of."""
        with_seeds = np.zeros(len(matches.labels), bool)
        for name in names:
            with_seeds |= matches.counts[:, rule.class_names.index(name)] > 0
        if not with_seeds.any():
            return "give seeds that documents have."
        tied = int((with_seeds & matches.tied).sum())
        return (
            f"{number_of('document', int(with_seeds.sum()))} have such seeds, {tied:,} "
            "as many of another class (ties have no label), the others fewer; leave "
            "out seeds that all documents have."
        )

    # === After training ===

    def _finish(
        self,
        rule: SeedRule,
        corpus: Corpus,
        matches: Matches,
        trainer: Trainer,
        truth: np.ndarray | None,
    ) -> None:
        settings, names = self.settings, rule.class_names
        first = final = trainer.main()
        drift = trainer.drift
        # By what the first says, so that true labels change no stratum.
        asked = functools.partial(
            estimating.sample_of,
            first.probs,
            self._labels(first, trainer),
            seed=settings.seed,
        )
        sample = asked(count=settings.to_label)
        judged_labels = None
        if truth is not None and settings.use_labels != "estimate":
            digest = hashlib.sha256(truth.astype("<i8").tobytes()).hexdigest()[:12]
            digest += f"-{settings.label_weight:g}"
            print("training with the true labels", flush=True)
            final = trainer.with_labels(truth, digest)
            drift = trainer.drift
            if settings.use_labels == "both":
                judged_labels = trainer.judged_with_labels(truth, digest)
        if drift is not None:
            self.warnings.append(
                "training on its own predictions led away from the seeds "
                f"({drift}): what was trained on labels alone is used, as by "
                "--iterations=0"
            )
        labels = self._labels(final, trainer)
        said = looking.Said(final.model, trainer.prepared.tokens, final.probs, labels)
        print("looking at seeds and mistakes", flush=True)
        judged = self._judged(trainer)
        results: dict[str, Any] = {
            "documents": len(corpus.texts),
            **_counts(rule, matches, labels),
            "use_labels": settings.use_labels if truth is not None else None,
            "deletion_ratio": trainer.ratio,
            "estimates": estimating.without_labels(rule, matches, judged),
            "seeds": looking.seeds_of(
                rule,
                matches,
                corpus.texts,
                judged.get("deletion", judged.get("plain")),
                truth,
            ),
            "conflicts": report.texts_of(
                looking.conflicts(rule, matches, corpus.ids, corpus.texts)
            ),
            "suggested": looking.suggested(rule, matches, said),
            "doubtful": report.texts_of(
                looking.doubtful(rule, matches, said, corpus.ids, corpus.texts)
            ),
            "deletion_effect": self._deletion_effect(trainer, first, matches, truth),
            "changes": [
                float(np.mean(a != b))
                for a, b in zip(final.rounds[1:], final.rounds[:-1], strict=True)
            ],
            "settings": dataclasses.asdict(settings),
        }
        harmful = [row["text"] for row in results["seeds"] if row["is_harmful"]]
        if harmful:
            self.warnings.append(
                "most documents that have one of these seeds alone seem to be of "
                f"another class: {', '.join(harmful)}"
            )
        results["warnings"] = self.warnings
        if truth is not None and settings.use_labels != "train":
            own = (
                self._labels(first, trainer) if judged_labels is None else judged_labels
            )
            # An earlier run may have asked for as many as there are labels.
            earlier = asked(count=max(int((truth >= 0).sum()), 1))
            found = estimating.accuracy(own, truth, [sample, earlier])
            if found is not None:
                results["accuracy"] = found
            if settings.use_labels == "estimate":
                results["calibration"] = estimating.calibration(
                    first.probs, own, truth, [sample, earlier]
                )
        sure = final.probs.max(axis=1)
        told = np.where(sure < settings.threshold, -1, labels)
        # Those without a word not counted.
        results["blank"] = int(((told < 0) & (labels >= 0)).sum())
        self._write_tables(corpus, matches, names, told, sure, sample.rows)
        self._write_model(rule, final)
        report.write(self.folder, results, sure)
        write_json(self.folder / RESULTS, results)
        for line in report.summary(results):
            print(line)
        for line in self.warnings:
            print(f"warning: {line}")
        print(f"predictions: {self.folder / _PREDICTIONS}")
        print(f"report: {self.folder / 'report.html'}")
        print(f"serve: {self.folder / _SAVED_MODEL}")

    def _labels(self, outcome: SeedOutcome, trainer: Trainer) -> np.ndarray:
        labels = outcome.probs.argmax(axis=1)
        # Of a text without a word nothing is said.
        labels[~trainer.prepared.has_words] = -1
        return labels

    def _judged(self, trainer: Trainer) -> dict[str, np.ndarray]:
        """Returns what probes say of labelled documents that they have not seen."""
        distinct = trainer.distinct_labelled
        if distinct < TRAIN_FOLDS:
            self.warnings.append(
                "how good labels are is not estimated by probes: that takes "
                f"{TRAIN_FOLDS} different documents with labels at least, found "
                f"{distinct}"
            )
            return {}
        found = {"plain": trainer.judged(None, "judged-plain")}
        if trainer.deletion is not None:
            found["deletion"] = trainer.judged(trainer.deletion, "judged")
        return found

    def _deletion_effect(
        self,
        trainer: Trainer,
        outcome: SeedOutcome,
        matches: Matches,
        truth: np.ndarray | None,
    ) -> dict[str, Any] | None:
        """Returns what deletion changes of a classifier that is trained once."""
        if trainer.deletion is None:
            return None
        plain, own = trainer.plain().rounds[0], outcome.rounds[0]
        known = matches.labels >= 0
        found = {
            "differ": float(np.mean(plain != own)),
            "follows_plain": float(np.mean(plain[known] == matches.labels[known])),
            "follows": float(np.mean(own[known] == matches.labels[known])),
        }
        if truth is not None:
            rows = np.flatnonzero(truth >= 0)
            found["labels"] = len(rows)
            found["right_plain"] = int(np.sum(plain[rows] == truth[rows]))
            found["right"] = int(np.sum(own[rows] == truth[rows]))
        return found

    def _write_model(self, rule: SeedRule, outcome: SeedOutcome) -> None:
        outcome.model.threshold = self.settings.threshold
        with naming(self.folder / _MODEL):
            outcome.model.save(self.folder / _MODEL)
        with native_silence():
            export_text_classifier(
                outcome.model, self.folder / _SAVED_MODEL, rule=rule, overwrite=True
            )

    def _write_tables(
        self,
        corpus: Corpus,
        matches: Matches,
        names: tuple[str, ...],
        labels: np.ndarray,
        sure: np.ndarray,
        asked: np.ndarray,
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
        write_csv(self.folder / _PREDICTIONS, itertools.chain([header], rows))
        # What a spreadsheet and `--labels` can read.
        texts = [report.printable(corpus.texts[row]) for row in asked.tolist()]
        own = zip((corpus.ids[row] for row in asked.tolist()), texts, strict=True)
        write_csv(self.folder / _TO_LABEL, [("id", "text"), *own])


def _counts(rule: SeedRule, matches: Matches, labels: np.ndarray) -> dict[str, Any]:
    """Returns how many documents are labelled and predicted, and where both agree."""
    known = matches.labels >= 0
    return {
        "labelled": int(known.sum()),
        "tied": int(matches.tied.sum()),
        "agreement": float(np.mean(labels[known] == matches.labels[known])),
        "classes": [
            {
                "name": name,
                "by_seeds": int((matches.labels == number).sum()),
                "predicted": int((labels == number).sum()),
            }
            for number, name in enumerate(rule.class_names)
        ],
    }

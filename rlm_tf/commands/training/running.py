"""`rlm_tf train`, from the text to the report."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import Any

import numpy as np

from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.run_folder import claim
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands import model_folder
from rlm_tf.commands.report import writing
from rlm_tf.commands.settings import RESULTS, SETTINGS, TrainSettings
from rlm_tf.commands.training import (
    fitting,
    measuring,
    members,
    reading,
    vocabularies,
)
from rlm_tf.commands.training.plan import (
    Amounts,
    Plan,
    first_plan,
    fit_to_time,
    steps_of,
)
from rlm_tf.commands.training.results import held_out, scores_of, verdict
from rlm_tf.data import Corpus, Vocabulary
from rlm_tf.data.text.corpora import encoded_corpus
from rlm_tf.data.text.tokenisation import SUBWORD_RULES
from rlm_tf.file_errors import naming
from rlm_tf.models import count_parameters
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import export_language_model

# What a run writes beside its settings; with --overwrite it is removed before.
_FILES = (
    RESULTS,
    model_folder.PLAN,
    model_folder.MODEL,
    members.MODELS,
    model_folder.VOCABULARY,
    model_folder.N_GRAM,
    model_folder.SAVED_MODEL,
    "metrics.jsonl",
    "checkpoints",
    "report.md",
    "report.html",
    "report_files",
)
# Settings that say nothing of what is trained.
_NO_SETTINGS = ("output_dir", "resume", "overwrite", "dynamic")
# Seconds that finding out takes how long dynamic evaluation would take.
_LEAST_DYNAMIC = 20.0


def run(settings: TrainSettings) -> None:
    """Trains, measures, exports and reports, or goes on where a run was ended."""
    folder = pathlib.Path(str(settings.output_dir))
    with run_lock.held(folder.absolute()):
        Run(settings, folder).run()


class Run:
    """A run of `rlm_tf train` in its folder.

    Args:
        settings: What was asked for.
        folder: Where everything is written.
    """

    def __init__(self, settings: TrainSettings, folder: pathlib.Path) -> None:
        self.settings = settings
        self.folder = folder
        self.began = time.monotonic()

    def run(self) -> None:
        """Does what is not done yet."""
        print(f"{self.settings.text} -> {self.folder}", flush=True)
        texts = reading.read_texts(self.settings)
        if self.is_done(texts):
            print(f"done before: {self.folder / 'report.md'} (--overwrite trains anew)")
            return
        for line in texts.notes:
            print(f"  {line}")
        corpus, counted = self.read_corpus(texts)
        n_gram, n_gram_row = self._n_gram(corpus, counted)
        plan = self._plan(corpus, counted, n_gram, n_gram_row["seconds"])
        for line in plan.lines():
            print(f"  {line}")
        matched = n_gram if counted is not None and plan.imm else None
        time_text = number_of("epoch", plan.epochs)
        if plan.seconds is not None:
            time_text = f"{plan.seconds / 60:.1f} min"
        each = " each" if plan.ensemble > 1 else ""
        print(f"training for at most {time_text}{each}", flush=True)
        trained = members.train(
            plan,
            corpus,
            matched,
            self.folder,
            strategy=self.settings.strategy,
            resume=self.settings.resume,
        )
        self._finish(texts, corpus, n_gram, n_gram_row, plan, trained)

    # === Before training ===

    def is_done(self, texts: reading.Texts) -> bool:
        """Whether the folder has this run's results; removes what is not wanted."""
        wanted = {
            name: value
            for name, value in dataclasses.asdict(self.settings).items()
            if name not in _NO_SETTINGS
        }
        if wanted["dropouts"] is not None:
            wanted["dropouts"] = list(wanted["dropouts"])
        wanted["text_sha256"] = reading.digest_of(texts)
        return claim(
            self.folder / SETTINGS,
            wanted,
            _FILES,
            result=RESULTS,
            overwrite=self.settings.overwrite,
            resume=self.settings.resume,
            defaults={
                "bmi": False,
                "bmi_weight": 0.1,
                "bmi_pooling": "max",
                "ensemble": 1,
                "l2": 0.0,
                "weight_decay": 0.0,
                "noising": 0.0,
            },
        )

    def read_corpus(self, texts: reading.Texts) -> tuple[Corpus, np.ndarray | None]:
        """Returns the corpus, and the tokens that are only counted."""
        path = self.folder / model_folder.VOCABULARY
        rule, why = vocabularies.choose_rule(texts.splits["train"], self.settings)
        # TensorFlow Text says how it read the pieces.
        with native_silence():
            if path.exists():
                vocabulary = Vocabulary.load(path)
            else:
                vocabulary = vocabularies.make_vocabulary(
                    texts.splits["train"], rule, self.settings
                )
                with naming(path):
                    vocabulary.save(path)
        paths = dict.fromkeys(reading.SPLITS, texts.name)
        corpus = encoded_corpus(texts.name, texts.splits, vocabulary, paths)
        summary = corpus.summary
        assert summary is not None
        print(f"  rule: {rule} ({why})")
        notes = [f"vocabulary size: {vocabularies.size_reason(rule, self.settings)}"]
        if vocabulary.normalises:
            notes.append(vocabularies.NORMALISED)
        for line in notes:
            print(f"  {line}")
        texts.notes.extend(notes)
        for line in summary.lines():
            print(f"  {line}")
        asked, found = self.settings.max_size, len(vocabulary)
        if rule in SUBWORD_RULES and asked not in (None, found):
            texts.warnings.append(
                f"--max_size={asked:,} pieces are not possible for this text; there "
                f"are {found:,}"
            )
        texts.warnings.extend(summary.warnings())
        for line in texts.warnings:
            print(f"warning: {line}")
        counted = None
        if texts.counted is not None:
            counted = vocabulary.encode(texts.counted)
        return corpus, counted

    def _n_gram(
        self, corpus: Corpus, counted: np.ndarray | None
    ) -> tuple[KneserNey, dict[str, Any]]:
        path, order = self.folder / model_folder.N_GRAM, self.settings.order
        if path.exists():
            model, seconds = KneserNey.load(path), 0.0
        else:
            model, seconds = fitting.fit_n_gram(corpus, counted, order)
            with naming(path):
                model.save(path)
        text = held_out(corpus)["valid"]
        found = text.perplexity(
            measuring.n_gram_log_probs(model, text, corpus.vocabulary.eos_id)
        )
        print(
            f"Kneser-Ney of order {order}, {seconds:.1f} s: validation "
            f"{found.perplexity:.2f}, {found.bits_per_byte:.3f} bits per byte",
            flush=True,
        )
        return model, {
            "order": order,
            "floor": model.floor,
            "seconds": seconds,
            "only_counted": 0 if counted is None else len(counted),
        }

    def _plan(
        self,
        corpus: Corpus,
        counted: np.ndarray | None,
        n_gram: KneserNey,
        n_gram_seconds: float,
    ) -> Plan:
        """Returns the plan, the one that an earlier process made if there is one."""
        path = self.folder / model_folder.PLAN
        if path.exists():
            content = read_json(path, "give --overwrite")
            content["dropouts"] = tuple(content["dropouts"])
            return Plan(**content)
        amounts = Amounts(len(corpus.train), 0 if counted is None else len(counted))
        plan = first_plan(
            self.settings, corpus.vocabulary.rule, len(corpus.vocabulary), amounts
        )
        if self.settings.epochs is None:
            matched = n_gram if counted is not None and plan.imm else None
            step = fitting.step_seconds(plan, corpus, matched)
            print(f"  a step of width {plan.width} takes {1000 * step:.0f} ms")
            spent = time.monotonic() - self.began
            plan = fit_to_time(
                plan,
                self.settings,
                len(corpus.train),
                step,
                spent,
                held_out_tokens=len(corpus.valid) + len(corpus.test),
                n_gram_seconds=n_gram_seconds,
            )
        write_json(path, dataclasses.asdict(plan))
        return plan

    # === After training ===

    def _finish(
        self,
        texts: reading.Texts,
        corpus: Corpus,
        n_gram: KneserNey,
        n_gram_row: dict[str, Any],
        plan: Plan,
        trained: members.Trained,
    ) -> None:
        kept, eos = trained.kept, corpus.vocabulary.eos_id
        model = language_model_of(kept)
        with naming(self.folder / model_folder.MODEL):
            kept.save(self.folder / model_folder.MODEL)
        print("measuring", flush=True)
        held = held_out(corpus)
        measured = measuring.measure(model, n_gram, held, prefix=eos)
        warnings = list(texts.warnings)
        if plan.ensemble > 1:
            measured.add_first(
                measuring.measure(trained.first, n_gram, held, prefix=eos)
            )
        spent = time.monotonic() - self.began + trained.earlier
        dynamic_rate = self._add_dynamic(measured, model, corpus, held, warnings, spent)
        # TensorFlow Text says how it read the pieces, here, too.
        with native_silence():
            path = export_language_model(
                kept,
                corpus.vocabulary,
                self.folder / model_folder.SAVED_MODEL,
                mixture=(n_gram, measured.mu) if plan.mixture else None,
                temperature=measured.temperature,
                overwrite=True,
            )
        results: dict[str, Any] = {
            "text": texts.name,
            "notes": texts.notes,
            "plan": dataclasses.asdict(plan),
            "choices": list(plan.lines()),
            "vocabulary": corpus.summary.lines() if corpus.summary else [],
            "n_gram": n_gram_row,
            "mixture": {
                "mu": measured.mu if plan.mixture else None,
                "best_mu": measured.mu,
            },
            "temperature": measured.temperature,
            "dynamic_rate": dynamic_rate,
            "scores": scores_of(measured.log_probs, held),
            "training": {**trained.summary(), "parameters": count_parameters(model)},
            "seconds": time.monotonic() - self.began,
            "saved_model_megabytes": _size(path) / 1e6,
        }
        results["warnings"] = [*warnings, *verdict(results)]
        steps = steps_of(len(corpus.train), plan.batch_size, plan.window)
        writing.write(
            self.folder,
            results,
            corpus,
            model,
            n_gram,
            measured.log_probs,
            trained.curves,
            steps,
        )
        write_json(self.folder / RESULTS, results)
        print("\n" + "\n".join(writing.table(results["scores"])) + "\n")
        for line in results["warnings"]:
            print(f"warning: {line}")
        print(f"report: {self.folder / 'report.html'}")
        print(f"serve: {path}; rlm_tf generate --model={self.folder} --prompt=...")

    def _add_dynamic(
        self,
        measured: measuring.Measured,
        model: Any,
        corpus: Corpus,
        held: dict[str, measuring.Text],
        warnings: list[str],
        spent: float,
    ) -> float | None:
        """Adds dynamic evaluation to what was measured, if there is time for it.

        Args:
            measured: Gets it.
            model: The language model.
            corpus: Its training text gives the statistics.
            held: The texts.
            warnings: Get the reason where it is left out.
            spent: Seconds of this run, earlier processes included.

        Returns:
            Its rate; None where it was left out.
        """
        if not self.settings.dynamic:
            return None
        if self.settings.ensemble > 1:
            warnings.append(
                "dynamic evaluation is left out: it is measured of one model only"
            )
            return None
        left = None
        if self.settings.epochs is None:
            # A third of it is for the export and the report.
            left = (60 * self.settings.minutes - spent) * 2 / 3
            if left < _LEAST_DYNAMIC:
                warnings.append(
                    "dynamic evaluation is left out: too few of --minutes are left"
                )
                return None
        found = measuring.dynamic_log_probs(
            model,
            corpus.train,
            held,
            prefix=corpus.vocabulary.eos_id,
            most_seconds=left,
        )
        if isinstance(found, str):
            warnings.append(f"dynamic evaluation is left out: {found}")
            return None
        measured.log_probs["dynamic evaluation"], rate = found
        return rate


def _size(folder: pathlib.Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

"""`rlm_tf pretrain`, from the text to the report."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import pathlib
import time
from typing import Any

import keras
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.run_folder import claim
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.encoders import fitting, pretraining_report
from rlm_tf.commands.encoders.folder import (
    MODEL,
    PLAN,
    RUN_FILES,
    SAVED_MODEL,
    VOCABULARY,
    digest_of,
    encoder_of,
    file_digest,
    settings_that_count,
)
from rlm_tf.commands.encoders.pretraining_plan import (
    Plan,
    build,
    masking,
)
from rlm_tf.commands.encoders.pretraining_text import read_texts, rows_of
from rlm_tf.commands.encoders.settings import RESULTS, SETTINGS, PretrainSettings
from rlm_tf.data import Looks, Segments, Vocabulary, encoder_vocabulary
from rlm_tf.file_errors import naming
from rlm_tf.models import count_parameters
from rlm_tf.serving import export_encoder
from rlm_tf.training import AdamLog, DivergenceGuard, ResumableBatches

# Held-out rows that are looked at while training.
_MOST_ROWS = 512
_LOOKS, _LEAST_LOOK = 20, 25
# Warm-up: a tenth of the steps, at most so many.
_WARM_UP, _MOST_WARM_UP = 0.1, 1000
# With so many minutes a wider encoder is trained.
_WIDE_MINUTES = 300.0
# Seconds for export and report, and share of the minutes for them.
_AFTER, _AFTER_SHARE = 20.0, 0.05
# A detector whose loss does not leave ln 2 for so many looks has learnt nothing.
_STUCK, _STUCK_LOOKS = 0.69, 6
# So few steps teach nothing.
_FEW_STEPS = 100
# Of the encoder, by objective.
_RATES = {"electra": 1e-3, "masked": 2e-3}
# Of a text that is read more often; tried at 22 passes, where none is better.
_DROPOUT, _FEW_PASSES = 0.1, 30


def run(settings: PretrainSettings) -> None:
    """Trains an encoder, exports and reports, or goes on where a run was ended."""
    folder = pathlib.Path(str(settings.output_dir))
    with run_lock.held(folder.absolute()):
        Run(settings, folder).run()


class Run:
    """A run of `rlm_tf pretrain` in its folder.

    Args:
        settings: What was asked for.
        folder: Where everything is written.
        texts: Training and held-out text; None: those of the settings.
    """

    def __init__(
        self,
        settings: PretrainSettings,
        folder: pathlib.Path,
        texts: tuple[bytes, bytes] | None = None,
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.began = time.monotonic()
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self._given = texts

    def run(self) -> None:
        """Does what is not done yet."""
        name = "texts of the examples" if self._given else self.settings.text
        print(f"{name} -> {self.folder}", flush=True)
        train, valid = self._given or read_texts(
            self.settings, self.notes, self.warnings
        )
        if self._is_done(train, valid):
            print(f"done before: {self.folder / 'report.md'} (--overwrite trains anew)")
            return
        for line in self.notes:
            print(f"  {line}")
        vocabulary = self._vocabulary(train)
        rows, held = rows_of(
            self.settings, vocabulary, train, valid, self.notes, self.warnings
        )
        plan = self._plan(vocabulary, rows, held)
        for line in plan.lines():
            print(f"  {line}")
        for line in self.warnings:
            print(f"warning: {line}")
        model, fitted = self._fit(plan, vocabulary, rows, held)
        self._finish(plan, vocabulary, rows, held, model, fitted)

    # === Text ===

    def _is_done(self, train: bytes, valid: bytes) -> bool:
        wanted = settings_that_count(self.settings)
        digest = hashlib.sha256()
        for text in (train, valid):
            digest.update(len(text).to_bytes(8, "little"))
            digest.update(text)
        wanted["text_sha256"] = digest.hexdigest()
        return claim(
            self.folder / SETTINGS,
            wanted,
            RUN_FILES,
            result=RESULTS,
            overwrite=self.settings.overwrite,
            resume=self.settings.resume,
            # Runs of earlier versions did not say it.
            defaults={
                "whole_words": False,
                "two_texts": False,
                "embeddings": "separate",
                "variant": "thesis",
            },
            early=(VOCABULARY,),
        )

    def _vocabulary(self, train: bytes) -> Vocabulary:
        path = self.folder / VOCABULARY
        # TensorFlow Text says how it read the pieces.
        with native_silence():
            if path.exists():
                return Vocabulary.load(path)
            vocabulary = encoder_vocabulary(
                train,
                self.settings.max_size,
                normalisation="nfkc" if self.settings.nfkc else "identity",
            )
            with naming(path):
                vocabulary.save(path)
        print(f"  vocabulary: {len(vocabulary):,} pieces, learnt from the text")
        return vocabulary

    # === Training ===

    def _plan(self, vocabulary: Vocabulary, rows: Segments, held: Segments) -> Plan:
        path = self.folder / PLAN
        if path.exists():
            return Plan(**read_json(path, "give --overwrite"))
        settings = self.settings
        width = settings.width
        if width is None:
            wide = settings.steps is None and settings.minutes >= _WIDE_MINUTES
            width = 256 if wide else 128
        plan = Plan(
            objective=settings.objective,
            vocabulary_size=len(vocabulary),
            width=width,
            num_layers=settings.num_layers,
            num_heads=settings.num_heads or max(1, width // 64),
            generator_layers=settings.generator_layers,
            documents=rows.documents,
            length=settings.length,
            batch_size=rows.batch_size,
            look=1,
            looks=1,
            warm_up=0,
            learning_rate=settings.learning_rate or _RATES[settings.objective],
            generator_learning_rate=settings.generator_learning_rate,
            discriminator_weight=settings.discriminator_weight,
            mask_ratio=settings.mask_ratio,
            clip_norm=settings.clip_norm,
            dropout=_dropout(settings.dropout, math.inf),
            seed=settings.seed,
            seconds=None,
            whole_words=settings.whole_words,
            two_texts=settings.two_texts,
            embeddings=settings.embeddings,
            variant=settings.variant,
        )
        seconds = None
        if settings.steps is not None:
            steps = settings.steps
            looks = min(_LOOKS, max(1, steps // _LEAST_LOOK))
        else:
            data = _batches(plan, vocabulary, rows, fitting.PROBE_STEPS)
            speed = fitting.speed_of(
                lambda: build(plan), data, looked_at(plan, vocabulary, held)
            )
            print(
                f"  a step takes {1000 * speed.step:.0f} ms, a look at held-out text "
                f"{1000 * speed.look:.0f} ms"
            )
            spent = time.monotonic() - self.began
            whole = 60 * settings.minutes
            # At least half of what is left is training.
            left = whole - spent
            seconds = max(left - max(_AFTER, _AFTER_SHARE * whole), left / 2, 1.0)
            looks, steps = fitting.looks_and_steps(seconds, speed, _LOOKS, _LEAST_LOOK)
        plan = dataclasses.replace(
            plan,
            look=steps // looks,
            looks=looks,
            warm_up=min(int(_WARM_UP * steps), _MOST_WARM_UP),
            dropout=_dropout(settings.dropout, _passes(plan, steps, rows)),
            seconds=seconds,
        )
        write_json(path, dataclasses.asdict(plan))
        return plan

    def _fit(
        self, plan: Plan, vocabulary: Vocabulary, rows: Segments, held: Segments
    ) -> tuple[keras.Model, fitting.Fitted]:
        with distribution.strategy(self.settings.strategy).scope():
            model = build(plan)
        passes = _passes(plan, plan.steps, rows)
        steps = number_of("step", plan.steps)
        print(f"training: {steps}, {passes:.1f} passes", flush=True)
        highest = {"discriminator": _STUCK} if plan.objective == "electra" else None
        fitted = fitting.fit(
            model,
            _batches(plan, vocabulary, rows, plan.look),
            looked_at(plan, vocabulary, held),
            self.folder,
            epochs=plan.looks,
            warm_up=plan.warm_up,
            show=_line,
            seconds=plan.seconds,
            callbacks=[AdamLog()],
            guard=DivergenceGuard(
                recover=True,
                monitor="val_loss",
                highest=highest,
                highest_epochs=_STUCK_LOOKS,
            ),
            resume=self.settings.resume,
        )
        if fitted.is_cut:
            self.warnings.append(
                f"the time was over after {fitted.steps:,} of {steps}, "
                "while the rate was still falling"
            )
        elif plan.seconds is not None and fitted.steps < _FEW_STEPS:
            self.warnings.append(
                f"the time was enough for {number_of('step', fitted.steps)}, in which "
                "next to nothing is learnt (--minutes)"
            )
        if fitted.recoveries:
            self.warnings.append(
                f"training diverged {number_of('time', fitted.recoveries)} and went on "
                "with lower rates (--learning_rate)"
            )
        return model, fitted

    # === After training ===

    def _finish(
        self,
        plan: Plan,
        vocabulary: Vocabulary,
        rows: Segments,
        held: Segments,
        model: keras.Model,
        fitted: fitting.Fitted,
    ) -> None:
        with naming(self.folder / MODEL):
            model.save(self.folder / MODEL)
        print("measuring", flush=True)
        with native_silence():
            export_encoder(
                model,
                vocabulary,
                self.folder / SAVED_MODEL,
                length=plan.length,
                overwrite=True,
            )
        results = pretraining_report.measure(plan, vocabulary, rows, held, model)
        learnt_nothing = pretraining_report.learning_warning(results)
        self.warnings += learnt_nothing
        results |= {
            "has_learnt": not learnt_nothing,
            "text": "texts of the examples" if self._given else self.settings.text,
            "notes": self.notes,
            "warnings": self.warnings,
            "choices": plan.lines(),
            "plan": dataclasses.asdict(plan),
            "parameters": count_parameters(encoder_of(model)),
            "vocabulary_sha256": digest_of(vocabulary),
            "model_sha256": file_digest(self.folder / MODEL),
            "steps": fitted.steps,
            "training_seconds": round(fitted.seconds, 1),
            "curve": fitted.curve,
        }
        pretraining_report.write(self.folder, results)
        write_json(self.folder / RESULTS, results)
        for line in pretraining_report.summary(results):
            print(line)
        for line in self.warnings:
            print(f"warning: {line}")
        print(f"report: {self.folder / 'report.html'}")
        print(
            f"next: rlm_tf finetune --encoder={self.folder} --train=FILE.csv; rlm_tf "
            f"fill_mask --model={self.folder} --text=..."
        )


def _dropout(given: float | None, passes: float) -> float:
    """Returns the rate of dropout for so many passes over the text."""
    if given is not None:
        return given
    return 0.0 if passes <= _FEW_PASSES else _DROPOUT


def _passes(plan: Plan, steps: int, rows: Segments) -> float:
    """Returns how often so many steps read the text."""
    return steps * plan.batch_size / len(rows.tokens)


def _batches(
    plan: Plan, vocabulary: Vocabulary, rows: Segments, look: int
) -> ResumableBatches:
    return ResumableBatches(Looks(rows, look), transform=masking(plan, vocabulary))


def looked_at(plan: Plan, vocabulary: Vocabulary, held: Segments) -> tf.data.Dataset:
    """Returns held-out batches, masked alike in every pass."""
    batches = held.in_order(plan.batch_size)
    masked = masking(plan, vocabulary).of_all(batches)
    return masked.take(-(-_MOST_ROWS // plan.batch_size)).cache()


def _line(logs: dict[str, Any]) -> str:
    if "val_f1" in logs:
        return (
            f"held out: replaced words found, F1 {logs['val_f1']:.3f}; generator "
            f"{math.exp(logs['val_generator']):.1f} perplexity of masked words, "
            f"{100 * logs['val_generator_accuracy']:.1f} % right"
        )
    return (
        f"held out: {logs['val_perplexity']:.1f} perplexity of masked words, "
        f"{100 * logs['val_accuracy']:.1f} % right"
    )

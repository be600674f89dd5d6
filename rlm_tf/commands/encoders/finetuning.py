"""`rlm_tf finetune`, from labelled texts to the report."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from typing import Any

import keras
import numpy as np

from rlm_tf import distribution
from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.run_folder import claim
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.encoders import examples as labelled
from rlm_tf.commands.encoders import finetuning_report, fitting
from rlm_tf.commands.encoders.folder import (
    MODEL,
    PLAN,
    RUN_FILES,
    SAVED_MODEL,
    VOCABULARY,
    TrainedEncoder,
    encoder_of,
    load_encoder,
    settings_that_count,
)
from rlm_tf.commands.encoders.settings import (
    ENCODER,
    RESULTS,
    SETTINGS,
    FinetuneSettings,
)
from rlm_tf.data import LabelledBatches, LabelledTexts, Looks
from rlm_tf.file_errors import naming
from rlm_tf.models import SequenceClassifier, count_parameters, layerwise_decay
from rlm_tf.models.encoders.other_dropout import with_dropout
from rlm_tf.optimizers.spared import spare_biases
from rlm_tf.serving import export_encoder
from rlm_tf.training import KeepBest, ResumableBatches

# Steps that a few examples are passed over, and passes, at least and at most.
_STEPS, _LEAST_EPOCHS, _MOST_EPOCHS = 600, 3, 20
# The length of most texts, and most tokens of a row.
_MOST_TEXTS, _MOST_LENGTH, _LEAST_LENGTH = 0.95, 256, 16
_BETA_2, _EPSILON = 0.98, 1e-6
# Of AdaMax: for encoders of ours, and for published ones, which are larger.
_RATE, _PUBLISHED_RATE = 1e-3, 5e-5


def run(settings: FinetuneSettings) -> None:
    """Fine-tunes, exports and reports, or goes on where a run was ended."""
    folder = pathlib.Path(str(settings.output_dir))
    with run_lock.held(folder.absolute()):
        Run(settings, folder).run()


def encoder_warnings(settings: FinetuneSettings, trained: TrainedEncoder) -> list[str]:
    """Returns what is to be said of an encoder that may not be what is needed.

    One that has learnt next to nothing, or that has seen no pairs of texts.
    """
    found = []
    if not trained.has_learnt:
        found.append(
            "the encoder has learnt next to nothing (its report.md says how little): "
            "expect no more than of one that begins anew"
        )
    if settings.text_b_column is not None and not trained.knows_pairs:
        found.append(
            "the encoder was pre-trained on single texts: what tells it the second of "
            "a pair is learnt from these examples alone (rlm_tf pretrain --two_texts)"
        )
    return found


class Run:
    """A run of `rlm_tf finetune` in its folder.

    Args:
        settings: What was asked for.
        folder: Where everything is written.
        examples: The labelled texts; None: those of the settings.
    """

    def __init__(
        self,
        settings: FinetuneSettings,
        folder: pathlib.Path,
        examples: labelled.Examples | None = None,
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.warnings: list[str] = []
        self._examples = examples

    def run(self) -> None:
        """Does what is not done yet."""
        settings = self.settings
        print(f"{settings.train} -> {self.folder}", flush=True)
        examples = self._examples or labelled.read_examples(settings)
        trained = load_encoder(str(settings.encoder))
        if self._is_done(examples, trained):
            print(f"done before: {self.folder / 'report.md'} (--overwrite trains anew)")
            return
        for line in examples.notes:
            print(f"  {line}")
        print(f"  classes: {_classes(examples.train)}")
        self.warnings += encoder_warnings(settings, trained)
        length = settings.length or _length(examples.train, trained)
        most = encoder_of(trained.model).most_tokens
        if most is not None and length > most:
            raise ValueError(
                f"--length must be at most {most}, what --encoder={settings.encoder} "
                f"reads, found {length}."
            )
        batches = {
            name: LabelledBatches(
                getattr(examples, name),
                trained.vocabulary,
                length,
                settings.batch_size,
                seed=settings.seed,
            )
            for name in ("train", "valid", "test")
        }
        cut = float(batches["train"].cut.mean())
        print(f"  rows of {length} tokens; {100 * cut:.0f} % of the texts are longer")
        epochs = self._epochs(examples, trained, batches["train"], batches["valid"])
        with distribution.strategy(settings.strategy).scope():
            model = self._build(examples, trained)
        print(
            f"training: {number_of('epoch', epochs)} of {batches['train'].steps:,} "
            f"steps, rate {self._rate(trained):g}",
            flush=True,
        )
        fitted, best_epoch = self._fit(model, batches, epochs)
        self._finish(model, trained, examples, batches, length, fitted, best_epoch)

    def _is_done(self, examples: labelled.Examples, trained: TrainedEncoder) -> bool:
        wanted = settings_that_count(self.settings)
        wanted["text_sha256"] = examples.digest()
        wanted["encoder_sha256"] = trained.sha256
        return claim(
            self.folder / SETTINGS,
            wanted,
            RUN_FILES,
            result=RESULTS,
            overwrite=self.settings.overwrite,
            resume=self.settings.resume,
            beside=(ENCODER,),
            # Runs of earlier versions did not say it.
            defaults={"weight_decay": 0.0},
        )

    # === Training ===

    def _build(
        self, examples: labelled.Examples, trained: TrainedEncoder
    ) -> SequenceClassifier:
        settings, train = self.settings, examples.train
        rate = self._rate(trained)
        keras.utils.set_random_seed(settings.seed)
        model = SequenceClassifier(
            with_dropout(encoder_of(trained.model), settings.dropout),
            None if train.is_regression else len(train.names),
            pooling="mean" if settings.pooling == "mean" else "cls",
            clip_norm=settings.clip_norm,
            seed=settings.seed,
            **labelled.label_units(train),
        )

        def adamax(factor: float) -> keras.optimizers.Optimizer:
            optimizer = keras.optimizers.Adamax(
                factor * rate,
                weight_decay=settings.weight_decay or None,
                beta_2=_BETA_2,
                epsilon=_EPSILON,
            )
            return spare_biases(optimizer)

        decay = settings.rate_decay
        model.compile(
            adamax(1.0) if decay == 1.0 else layerwise_decay(model, adamax, decay)
        )
        return model

    def _rate(self, trained: TrainedEncoder) -> float:
        given = self.settings.learning_rate
        if given is not None:
            return given
        return _PUBLISHED_RATE if trained.is_published else _RATE

    def _epochs(
        self,
        examples: labelled.Examples,
        trained: TrainedEncoder,
        train: LabelledBatches,
        valid: LabelledBatches,
    ) -> int:
        """Returns the passes, as an earlier process has chosen them if there is one."""
        if self.settings.epochs is not None:
            return self.settings.epochs
        path = self.folder / PLAN
        if path.exists():
            return int(read_json(path, "give --overwrite", ("epochs",))["epochs"])
        passes = math.ceil(_STEPS / train.steps)
        epochs = min(max(passes, _LEAST_EPOCHS), _MOST_EPOCHS)
        if self.settings.minutes is not None:
            few = ResumableBatches(Looks(train, fitting.PROBE_STEPS))
            speed = fitting.speed_of(
                lambda: self._build(examples, trained), few, valid.in_order()
            )
            left = fitting.seconds_left(60 * self.settings.minutes, speed)
            most = int(left / (train.steps * speed.step + speed.look))
            epochs = min(epochs, max(most, 1))
            print(f"  a step takes {1000 * speed.step:.0f} ms")
        write_json(path, {"epochs": epochs})
        return epochs

    def _fit(
        self,
        model: SequenceClassifier,
        batches: dict[str, LabelledBatches],
        epochs: int,
    ) -> tuple[fitting.Fitted, int]:
        settings, train = self.settings, batches["train"]
        keep = KeepBest("val_accuracy", "max", ties="last")
        if model.is_regression:
            keep = KeepBest("val_squared_error")
        print(f"the best epoch by {keep.monitor} is kept", flush=True)
        fitted = fitting.fit(
            model,
            ResumableBatches(train),
            batches["valid"].in_order(),
            self.folder,
            epochs=epochs,
            warm_up=int(settings.warm_up * epochs * train.steps),
            show=_line,
            seconds=None if settings.minutes is None else 60 * settings.minutes,
            callbacks=[keep],
            resume=settings.resume,
        )
        if fitted.is_cut:
            self.warnings.append(
                f"the time was over after {fitted.steps:,} of "
                f"{epochs * train.steps:,} steps (--minutes)"
            )
        if keep.best.available:
            keep.best.restore(model)
        best = -1 if keep.best.epoch is None else keep.best.epoch
        return fitted, best + 1

    # === After training ===

    def _finish(
        self,
        model: SequenceClassifier,
        trained: TrainedEncoder,
        examples: labelled.Examples,
        batches: dict[str, LabelledBatches],
        length: int,
        fitted: fitting.Fitted,
        best_epoch: int,
    ) -> None:
        with naming(self.folder / MODEL):
            model.save(self.folder / MODEL)
            trained.vocabulary.save(self.folder / VOCABULARY)
        print("measuring, and a linear model of tf-idf beside", flush=True)
        with native_silence():
            export_encoder(
                model,
                trained.vocabulary,
                self.folder / SAVED_MODEL,
                length=length,
                labels=examples.train.names,
                pairs=examples.train.texts_b is not None,
                overwrite=True,
            )
        outputs = model.predict(
            batches["test"].in_order().map(lambda x, _: x), verbose=0
        )
        outputs = np.asarray(outputs, np.float64)
        results = finetuning_report.measure(examples, outputs)
        results |= {
            "train": self.settings.train,
            "encoder": str(self.settings.encoder),
            "notes": examples.notes,
            "warnings": self.warnings,
            "settings": dataclasses.asdict(self.settings),
            "length": length,
            "cut": float(batches["test"].cut.mean()),
            "parameters": count_parameters(model),
            "best_epoch": best_epoch,
            "steps": fitted.steps,
            "training_seconds": round(fitted.seconds, 1),
            "curve": fitted.curve,
        }
        finetuning_report.write(self.folder, results)
        write_json(self.folder / RESULTS, results)
        for line in finetuning_report.summary(results):
            print(line)
        for line in self.warnings:
            print(f"warning: {line}")
        print(f"report: {self.folder / 'report.html'}")
        by_lines = f"; rlm_tf classify --model={self.folder} < lines.txt"
        is_pair = examples.train.texts_b is not None
        print(f"serve: {self.folder / SAVED_MODEL}{'' if is_pair else by_lines}")


def _length(train: LabelledTexts, trained: TrainedEncoder) -> int:
    """Returns a length that most texts fit into."""
    rows = LabelledBatches(train, trained.vocabulary, _MOST_LENGTH, 1)
    sizes = (rows.tokens != 0).sum(axis=1)
    length = max(np.quantile(sizes, _MOST_TEXTS, method="higher"), _LEAST_LENGTH)
    return int(min(length, encoder_of(trained.model).max_length))


def _classes(train: LabelledTexts) -> str:
    if train.is_regression:
        return f"none, numbers from {train.labels.min():g} to {train.labels.max():g}"
    counts = np.bincount(train.labels, minlength=len(train.names))
    shown = [
        f"{name} ({count:,})" for name, count in zip(train.names, counts, strict=True)
    ]
    return ", ".join([*shown[:10], *(["..."] if len(shown) > 10 else [])])


def _line(logs: dict[str, Any]) -> str:
    if "val_accuracy" in logs:
        return (
            f"held out: {100 * logs['val_accuracy']:.1f} % right, "
            f"{logs['val_nll']:.3f} nats"
        )
    return f"held out: squared error {logs['val_squared_error']:.4g}"

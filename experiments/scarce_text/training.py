"""Trains a model of the study, in its folder."""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.kit import run_files
from experiments.kit.mixture_judge import SPLITS
from experiments.kit.run_settings import training_text
from experiments.scarce_text.arms import ARMS, PUBLISHED, Values
from experiments.scarce_text.building import compiled_model, noise_of
from experiments.scarce_text.choosing import ScarceRun, values_of
from experiments.scarce_text.config import ScarceConfig
from experiments.scarce_text.zaremba import (
    ROWS,
    zaremba_model,
    zaremba_noise,
    zaremba_rate,
)
from rlm_tf.averaging import TwoTailedAveraging
from rlm_tf.data import (
    ContiguousBatches,
    Corpus,
    contiguous_batches,
    load_corpus,
    load_text_corpus,
)
from rlm_tf.file_errors import naming
from rlm_tf.training import (
    DivergenceGuard,
    MetricsLog,
    ResumableBatches,
    read_metrics_log,
)

_SECONDS = 120.0


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        corpus: The corpus.
        text: What is trained on.
        values: The arm's settings.
        batches: Of the text; None where nothing is trained.
        noise: What replaces words of the batches, or None.
        model: Compiled, or None.
    """

    corpus: Corpus
    text: np.ndarray
    values: Values
    batches: ContiguousBatches | None
    noise: Any
    model: keras.Model | None


def prepare(run: ScarceRun) -> Prepared:
    """Reads the corpus, and returns the compiled model of a run."""
    config, arm, seed = run.config, run.arm, run.seed
    keras.utils.set_random_seed(seed)
    corpus = read_corpus(config)
    is_published = arm in PUBLISHED
    rows = ROWS if is_published else config.batch_size
    text = training_text(corpus, run.fraction, rows)
    values = values_of(run)
    if arm not in ARMS and not is_published:
        return Prepared(corpus, text, values, None, None, None)
    window = values["window"] if is_published else config.window
    batches = contiguous_batches(text, rows, window, prefix=corpus.vocabulary.eos_id)
    if is_published:
        noise = zaremba_noise(arm, corpus, text, seed)
        model = zaremba_model(arm, corpus, text, seed)
        return Prepared(corpus, text, values, batches, noise, model)
    steps = batches.steps * _epochs(config, values)
    model = compiled_model(config, arm, values, corpus, text, seed, steps)
    noise = noise_of(arm, values, text, len(corpus.vocabulary), seed)
    return Prepared(corpus, text, values, batches, noise, model)


def _epochs(config: ScarceConfig, values: Values) -> int:
    """Returns the passes of an arm, which may have a number of its own."""
    return int(values.get("epochs", config.epochs))


def read_corpus(config: ScarceConfig) -> Corpus:
    """Returns the corpus of a grid, of words or of subwords learnt from it."""
    corpus = load_corpus(config.corpus)
    if not config.pieces:
        return corpus
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"{split}.txt" for split in ("train", *SPLITS)]
        for file in files:
            tokens = getattr(corpus, file.stem)
            file.write_text(corpus.vocabulary.decode(tokens), "utf-8")
        return load_text_corpus(
            *files, rule="sentencepiece-unigram", max_size=config.pieces
        )


@contextlib.contextmanager
def trained(
    run: ScarceRun, prepared: Prepared, folder: pathlib.Path
) -> Iterator[dict[str, Any]]:
    """Trains a model, which has its best weights inside; yields what it took."""
    corpus, batches, model = prepared.corpus, prepared.batches, prepared.model
    assert batches is not None and model is not None
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    data = ResumableBatches(batches, transform=prepared.noise)
    if run.arm in PUBLISHED:
        rates = keras.callbacks.LearningRateScheduler(
            lambda epoch, _: zaremba_rate(run.arm, epoch)
        )
        epochs = prepared.values["epochs"]
        run_files.fit_resumably(model, data, folder, epochs, [log], _SECONDS, [rates])
        yield _cost(log, model, folder)
        return
    config = run.config
    looked_at = corpus.valid[: config.looked_at]
    valid = contiguous_batches(
        looked_at, config.batch_size, config.window, prefix=corpus.vocabulary.eos_id
    ).dataset()
    averages = TwoTailedAveraging(valid, monitor="nll")
    guard = DivergenceGuard(recover=True, factor=0.9, also=[averages])
    kept = [averages, log, guard]
    epochs = _epochs(config, prepared.values)
    run_files.fit_resumably(model, data, folder, epochs, kept, _SECONDS)
    with averages.best(model):
        yield _cost(log, model, folder)


def _cost(log: MetricsLog, model: keras.Model, folder: pathlib.Path) -> dict[str, Any]:
    with naming(folder / "model.keras"):
        model.save(folder / "model.keras")
    rows = read_metrics_log(log.path)
    return {
        "epochs": len(rows),
        "seconds": rows[-1].get("seconds"),
        "curve": [row.get("averaged_loss", row.get("nll")) for row in rows],
    }

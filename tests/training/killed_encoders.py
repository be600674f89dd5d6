"""Runs of encoders that `kill_runs` kills and resumes."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np

from rlm_tf.data import (
    LabelledBatches,
    LabelledTexts,
    Looks,
    MaskedCopy,
    Masking,
    Segments,
    encoder_vocabulary,
)
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import (
    Electra,
    InBatchContexts,
    InducedFineTuning,
    MaskedLanguageModel,
    SequenceClassifier,
)
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    AdamLog,
    DivergenceGuard,
    KeepBest,
    LinearRate,
    MetricsLog,
    ResumableBatches,
)
from tests.training.toy import train


def _encoder_text(rng: np.random.Generator) -> list[str]:
    words = [first + last for first in "bdfgk" for last in ("ada", "ono", "eme")]
    return [" ".join(rng.choice(words, 6)) for _ in range(60)]


def electra(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Pre-trains as `rlm_tf pretrain` does: two optimisers, rates, logs, a guard."""
    text = "\n".join(_encoder_text(np.random.default_rng(5)))
    vocabulary = encoder_vocabulary(text, 290)
    rows = Segments(text, vocabulary, 12, 8, documents=False, seed=1)
    masking = Masking(vocabulary, ratio=0.3, seed=2)

    def encoder(seed: int) -> TransformerEncoder:
        return TransformerEncoder(
            len(vocabulary), num_layers=1, width=4, num_heads=2, dropout=0.3, seed=seed
        )

    model = Electra(encoder(1), encoder(2), embeddings="separate", seed=3)
    rates = {"generator": 0.02, "discriminator": 0.05}
    return train(
        folder,
        model=model,
        optimizer=DecoupledOptimizer(
            {part: keras.optimizers.AdamW(rate) for part, rate in rates.items()},
            {"generator": 0.5, "discriminator": 1.0},
        ),
        batches=ResumableBatches(Looks(rows, 5), transform=masking),
        valid=masking.of_all(rows.in_order().take(2)),
        epochs=3,
        callbacks=[
            AdamLog(),
            MetricsLog(folder / "metrics.jsonl", every_steps=2),
            DivergenceGuard(
                recover=True, monitor="val_loss", highest={"discriminator": 9.0}
            ),
            LinearRate(15, 3),
        ],
        **options,
    )


def electra_of_one(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Pre-trains as ELECTRA's authors do: shared embeddings, one optimiser."""
    text = "\n".join(_encoder_text(np.random.default_rng(5)))
    vocabulary = encoder_vocabulary(text, 290)
    rows = Segments(text, vocabulary, 12, 8, documents=False, seed=1)
    masking = Masking(vocabulary, scheme="electra", seed=2)

    def encoder(seed: int) -> TransformerEncoder:
        return TransformerEncoder(
            len(vocabulary), num_layers=1, width=4, num_heads=2, dropout=0.3, seed=seed
        )

    return train(
        folder,
        model=Electra(encoder(1), encoder(2), clip_norm=1.0, seed=3),
        optimizer=keras.optimizers.AdamW(0.02),
        batches=ResumableBatches(Looks(rows, 5), transform=masking),
        valid=masking.of_all(rows.in_order().take(2)),
        epochs=3,
        callbacks=[MetricsLog(folder / "metrics.jsonl", every_steps=2)],
        **options,
    )


def fine_tuning(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Fine-tunes with masked copies and IMM by a bank; keeps the best epoch."""
    texts = _encoder_text(np.random.default_rng(5))
    vocabulary = encoder_vocabulary("\n".join(texts), 290)
    labels = np.array([text.count("b") > 1 for text in texts], np.int32)
    data = LabelledBatches(
        LabelledTexts(texts, labels, ("few", "many")), vocabulary, 12, 8, seed=1
    )
    encoder = TransformerEncoder(
        len(vocabulary), num_layers=1, width=4, num_heads=2, dropout=0.3, seed=1
    )
    model = InducedFineTuning(
        SequenceClassifier(encoder, 2, seed=2),
        MaskedLanguageModel(encoder, seed=3),
        KneserNey(2).fit(data.tokens[data.tokens > 0], len(vocabulary)),
        InBatchContexts(bank_size=16),
        positions=1,
        clip_norm=1.0,
        seed=4,
    )
    return train(
        folder,
        model=model,
        optimizer=keras.optimizers.Adamax(0.02),
        batches=ResumableBatches(data, transform=MaskedCopy(vocabulary, seed=5)),
        valid=data.in_order(),
        epochs=3,
        callbacks=[
            KeepBest("val_accuracy", "max", ties="last"),
            MetricsLog(folder / "metrics.jsonl", every_steps=2),
            LinearRate(21, 3),
        ],
        **options,
    )

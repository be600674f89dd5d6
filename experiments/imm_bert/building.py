"""The model that an arm trains: a classifier, masked words and IMM around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.imm_bert.config import ARMS, FinetuneConfig
from rlm_tf.models import (
    InBatchContexts,
    InducedFineTuning,
    MaskedLanguageModel,
    SampledPrefixes,
    SequenceClassifier,
)
from rlm_tf.restricted import KneserNey

# Of what P_hat says, so that a piece it has never seen has a logarithm.
_FLOOR = 1e-6
Read = Callable[[], np.ndarray]
ReadRows = Callable[[], tuple[np.ndarray, np.ndarray]]


def build(
    arm: str,
    config: FinetuneConfig,
    classifier: SequenceClassifier,
    masked_model: MaskedLanguageModel,
    *,
    text: Read,
    rows: ReadRows,
    seed: int,
) -> InducedFineTuning:
    """Returns the model of an arm that has masked words.

    Args:
        arm: Of `ARMS`.
        config: The settings.
        classifier: The classifier.
        masked_model: A masked language model around the same encoder.
        text: Returns what P_hat counts, int `[N]`.
        rows: Returns the texts that contexts are sampled from, and of which of two
            texts each piece is, int `[N, T]` both.
        seed: Of draws.
    """
    own = ARMS[arm]
    kind = own.get("contexts")
    restricted: KneserNey | None = None
    contexts: InBatchContexts | SampledPrefixes | None = None
    if kind is not None:
        bigram = KneserNey(2).fit(text(), masked_model.vocabulary_size)
        restricted = bigram.with_floor(_FLOOR)
    if kind == "bank":
        contexts = InBatchContexts(bank_size=config.bank_size)
    elif kind == "sampled":
        tokens, segments = rows()
        contexts = SampledPrefixes(tokens, config.contexts, segments)
    return InducedFineTuning(
        classifier,
        masked_model,
        restricted,
        contexts,
        mlm_weight=own.get("mlm_weight", config.mlm_weight),
        coefficient=config.coefficient,
        clip_norm=classifier.clip_norm,
        seed=seed,
    )

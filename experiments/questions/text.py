"""Questions 2 and 5 on a small language model of the embedded corpus."""

from __future__ import annotations

import dataclasses
import gc
from typing import Any

import keras
import tqdm

from experiments.questions.config import QuestionsConfig
from rlm_tf.data import Corpus, contiguous_batches, load_corpus
from rlm_tf.evaluation import evaluate
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RecurrentLanguageModel,
)
from rlm_tf.restricted import KneserNey, WordClassModel, word_classes
from rlm_tf.training import LearningRateHalving

_BATCH, _WINDOW = 20, 35
_CLASSES = 50


def restrictions(config: QuestionsConfig) -> dict[str, Any]:
    """Returns perplexities with one or several restricted models of the same text.

    Each has the coefficient 0.2; in the sums, they share 0.2 equally.
    """
    corpus = _corpus(config)
    tokens, size = corpus.train, len(corpus.vocabulary)
    classes = word_classes(tokens, size, min(_CLASSES, size), config.seed)
    of_classes = WordClassModel(size, min(_CLASSES, size)).fit(tokens, classes)
    models = {
        "classes": of_classes,
        **{
            name: KneserNey(order).fit(tokens, size)
            for order, name in enumerate(("unigram", "bigram", "trigram"), start=1)
        },
    }
    cells = []
    for arm in tqdm.tqdm(config.text_arms, unit="arm", disable=None):
        chosen = [models[name] for name in arm.split("+") if name != "none"]
        cells.append({"arm": arm, **_train(config, corpus, chosen, 0.4, 0.0)})
    return {"cells": cells, "train_tokens": len(tokens)}


def regularisers(config: QuestionsConfig) -> dict[str, Any]:
    """Returns perplexities by dropout and weight decay, with and without IMM."""
    corpus = _corpus(config)
    bigram = KneserNey(2).fit(corpus.train, len(corpus.vocabulary))
    settings = [(rate, 0.0) for rate in config.text_dropouts]
    settings += [(0.4, decay) for decay in config.text_decays]
    cells = []
    for dropout, decay in tqdm.tqdm(settings, unit="setting", disable=None):
        for name, models in (("none", []), ("imm", [bigram])):
            found = _train(config, corpus, models, dropout, decay)
            cells.append({"arm": name, "dropout": dropout, "decay": decay, **found})
    return {"cells": cells, "train_tokens": len(corpus.train)}


def _corpus(config: QuestionsConfig) -> Corpus:
    corpus = load_corpus("python-docs")
    count = max(int(len(corpus.train) * config.text_fraction), 500)
    return dataclasses.replace(corpus, train=corpus.train[:count])


def _train(
    config: QuestionsConfig,
    corpus: Corpus,
    restricted: list[Any],
    dropout: float,
    decay: float,
) -> dict[str, float]:
    """Returns validation and test perplexity of a model at its best epoch."""
    size, eos = len(corpus.vocabulary), corpus.vocabulary.eos_id
    train, valid = (
        contiguous_batches(text, _BATCH, _WINDOW, prefix=eos)
        for text in (corpus.train, corpus.valid)
    )
    model = RecurrentLanguageModel(
        size,
        config.text_width,
        2,
        dropout=dropout,
        initializer_scale=0.1,
        seed=config.seed,
        clip_norm=5.0,
        loss_scale=_WINDOW,
    )
    trained: keras.Model = model
    if restricted:
        trained = InducedModelMatching(
            model,
            [(each, 0.2 / len(restricted)) for each in restricted],
            InBatchContexts(min_count=1),
            clip_norm=5.0,
            loss_scale=_WINDOW,
        )
    trained.compile(keras.optimizers.SGD(1.0, weight_decay=decay or None))
    trained.fit(
        train.dataset(),
        validation_data=valid.dataset(),
        epochs=config.text_epochs,
        shuffle=False,
        verbose=0,
        callbacks=[LearningRateHalving()],
    )
    result = {
        name: evaluate(model, text, _BATCH, _WINDOW, prefix=eos).perplexity
        for name, text in (("valid", corpus.valid), ("test", corpus.test))
    }
    del trained, model
    keras.backend.clear_session()
    gc.collect()
    return result

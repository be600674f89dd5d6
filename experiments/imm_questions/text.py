"""Questions 2, 3 and 5 on a small language model of the embedded corpus."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tqdm

from experiments.imm_questions.config import QuestionsConfig
from rlm_tf.data import Corpus, contiguous_batches, load_corpus
from rlm_tf.evaluation import evaluate, induced_perplexity
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RecurrentLanguageModel,
    coefficient_from_ratio,
)
from rlm_tf.restricted import KneserNey, WordClassModel, word_classes
from rlm_tf.training import LearningRateHalving, released_graphs

_BATCH, _WINDOW = 20, 35
_CLASSES = 50
_COEFFICIENT = 0.2


def restrictions(config: QuestionsConfig) -> dict[str, Any]:
    """Returns perplexities with one or several restricted models of the same text.

    Several share the coefficient 0.2 equally.
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


def coefficients(config: QuestionsConfig) -> dict[str, Any]:
    """Returns perplexities by lambda, fixed or by the rule, on a quarter of the text.

    The restricted model is a bigram of the same quarter, or of all the text. Two rules
    set lambda before each epoch from A, the restricted model's advantage over the
    induced model of the moment (`AdvantageCoefficient`), nats: `advantage`, lambda = A,
    at most 1; `evidence`, r = 1 - exp(-n A) for n training tokens, at most 0.9, as on
    the logistic task.
    """
    corpus = _corpus(config)
    few = dataclasses.replace(corpus, train=corpus.train[: len(corpus.train) // 4])
    size = len(corpus.vocabulary)
    config = dataclasses.replace(config, text_epochs=2 * config.text_epochs)
    cells = [{"arm": "none", "source": "", **_train(config, few, [], 0.4, 0.0)}]
    for source, text in (("the same text", few.train), ("all text", corpus.train)):
        bigram = KneserNey(2).fit(text, size)
        rules = {
            "advantage": AdvantageCoefficient(bigram, few, lambda a: min(max(a, 0), 1)),
            "evidence": AdvantageCoefficient(
                bigram, few, functools.partial(_by_evidence, len(few.train))
            ),
        }
        for value in tqdm.tqdm(config.text_coefficients, disable=None):
            found = _train(config, few, [bigram], 0.4, 0.0, value)
            cells.append({"arm": f"lambda {value:g}", "source": source, **found})
        for name, rule in tqdm.tqdm(rules.items(), disable=None):
            found = _train(config, few, [bigram], 0.4, 0.0, 1.0, [rule])
            values = {"values": rule.values}
            cells.append({"arm": name, "source": source, **found, **values})
    return {"cells": cells, "train_tokens": len(few.train)}


def _by_evidence(num_tokens: int, advantage: float) -> float:
    ratio = -np.expm1(-num_tokens * max(advantage, 0.0))
    return coefficient_from_ratio(min(float(ratio), 0.9))


class AdvantageCoefficient(keras.callbacks.Callback):
    """Sets lambda by the restricted model's advantage, before each epoch.

    That is the mean of log P_hat - log Q_hat, nats, over the pairs of successive words
    of the validation text whose first word the training text has and whose second P_hat
    thinks possible. `rule` makes lambda of it; the model's coefficient must be 1.
    """

    def __init__(
        self, restricted: KneserNey, corpus: Corpus, rule: Callable[[float], float]
    ):
        super().__init__()
        self.rule = rule
        self.values: list[float] = []
        self._corpus = corpus
        valid = np.asarray(corpus.valid)
        own = restricted.score(valid)
        known = np.isfinite(own) & np.isin(valid[:-1], corpus.train)
        self._own = float(own[known].mean())
        # Cutting in front of its second word drops a pair, and no other.
        parts = np.split(valid, np.flatnonzero(~known) + 1)
        self._texts = {str(i): part for i, part in enumerate(parts) if len(part) > 1}

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        eos = self._corpus.vocabulary.eos_id
        found = induced_perplexity(
            self.model.model,
            self._corpus.train,
            self._texts,
            _BATCH,
            _WINDOW,
            prefix=eos,
        ).values()
        nats = sum(each.nats_per_token * each.num_tokens for each in found)
        advantage = self._own + nats / sum(each.num_tokens for each in found)
        self.values.append(float(self.rule(advantage)))
        self.model.active.assign(self.values[-1])


def _corpus(config: QuestionsConfig) -> Corpus:
    corpus = load_corpus("python-docs")
    count = max(int(len(corpus.train) * config.text_fraction), 500)
    return dataclasses.replace(corpus, train=corpus.train[:count])


@released_graphs()
def _train(
    config: QuestionsConfig,
    corpus: Corpus,
    restricted: list[Any],
    dropout: float,
    decay: float,
    coefficient: float = _COEFFICIENT,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
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
            [(each, coefficient / len(restricted)) for each in restricted],
            InBatchContexts(),
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
        callbacks=[LearningRateHalving(), *callbacks],
    )
    return {
        name: evaluate(model, text, _BATCH, _WINDOW, prefix=eos).perplexity
        for name, text in (("valid", corpus.valid), ("test", corpus.test))
    }

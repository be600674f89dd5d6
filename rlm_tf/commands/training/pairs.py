"""BMI in `rlm_tf train`: pairs of lines or segments, the wrapper, its second phase."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from rlm_tf.commands.training.plan import Plan
from rlm_tf.data import Corpus, SegmentPairs, SentencePairs, contiguous_batches
from rlm_tf.layers import PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.training import AfterEpochs, ResumableBatches, SwitchPhase

# Tokens of a line, on average: longer ones are no sentences.
_LONGEST, _LEAST_LINES = 60, 20
_PAIRS, _TOKENS = 12, 40


def batches_of(plan: Plan, corpus: Corpus, tokens: np.ndarray) -> ResumableBatches:
    """Returns batches to train on, with pairs of the training text where BMI is."""
    eos = corpus.vocabulary.eos_id
    batches = contiguous_batches(tokens, plan.batch_size, plan.window, prefix=eos)
    if not plan.bmi:
        return ResumableBatches(batches)
    return ResumableBatches(batches, transform=_pairs(plan, corpus))


def _are_lines(corpus: Corpus) -> bool:
    """Whether pairs are of lines; else they are of segments."""
    lines = int(np.count_nonzero(corpus.train == corpus.vocabulary.eos_id))
    return lines >= _LEAST_LINES and len(corpus.train) / lines <= _LONGEST


def _pairs(plan: Plan, corpus: Corpus) -> SentencePairs | SegmentPairs:
    if _are_lines(corpus):
        return SentencePairs(
            corpus.train,
            corpus.vocabulary.eos_id,
            _PAIRS,
            most_tokens=_TOKENS,
            seed=plan.seed,
        )
    return SegmentPairs(corpus.train, _PAIRS, segment=_TOKENS, seed=plan.seed)


def with_bmi(
    plan: Plan, corpus: Corpus, model: keras.Model, options: dict[str, Any]
) -> keras.Model:
    """Returns BMI around the model of a plan."""
    return BootstrappedMutualInformation(
        model,
        discriminator=PairDiscriminator(seed=plan.seed),
        weight=plan.bmi_weight,
        phase_two=plan.bmi_phase_two,  # type: ignore[arg-type]
        end_id=corpus.vocabulary.eos_id if _are_lines(corpus) else None,
        **options,
    )


def switch_of(plan: Plan) -> list[SwitchPhase]:
    """Returns the callback that begins the second phase, if there is one."""
    if plan.bmi_switch is None:
        return []
    return [SwitchPhase(AfterEpochs(plan.bmi_switch))]


def to_keep(model: keras.Model) -> keras.Model:
    """Returns what files and exports hold of a trained model.

    The language model; and around it the discriminator, but not an induced model.
    """
    inner = language_model_of(model)
    if not isinstance(model, BootstrappedMutualInformation):
        return inner
    return BootstrappedMutualInformation(
        inner, discriminator=model.discriminator, pooling=model.pooling
    )

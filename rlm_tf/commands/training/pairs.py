"""BMI in `rlm_tf train`: pairs of lines or segments, the wrapper, its second phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.commands.training.plan import Plan, steps_of
from rlm_tf.data import (
    Corpus,
    Noising,
    SegmentPairs,
    SentencePairs,
    contiguous_batches,
)
from rlm_tf.layers import PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.objective_model.term import Coefficient
from rlm_tf.training import (
    AfterEpochs,
    HeldOutPairs,
    ResumableBatches,
    SwitchPhase,
)

# Tokens of a line, on average: longer ones are no sentences.
_LONGEST, _LEAST_LINES = 60, 20
_LEAST_PAIRS, _TOKENS = 12, 40


def batches_of(plan: Plan, corpus: Corpus, tokens: np.ndarray) -> ResumableBatches:
    """Returns batches to train on, with noise, or pairs of the text where BMI is."""
    eos = corpus.vocabulary.eos_id
    batches = contiguous_batches(tokens, plan.batch_size, plan.window, prefix=eos)
    if plan.noising:
        size = len(corpus.vocabulary)
        noise = Noising(corpus.train, size, gamma0=plan.noising, seed=plan.seed)
        return ResumableBatches(batches, transform=noise)
    if not plan.bmi:
        return ResumableBatches(batches)
    return ResumableBatches(batches, transform=_pairs(plan, corpus))


def _are_lines(corpus: Corpus) -> bool:
    """Whether pairs are of lines; else they are of segments."""
    lines = int(np.count_nonzero(corpus.train == corpus.vocabulary.eos_id))
    return lines >= _LEAST_LINES and len(corpus.train) / lines <= _LONGEST


def _pairs(
    plan: Plan, corpus: Corpus, text: np.ndarray | None = None
) -> SentencePairs | SegmentPairs:
    """Returns pairs of a text; None: of the one that is trained on."""
    text = corpus.train if text is None else text
    # Pairs are laid over the rows of a batch: as many cost no more than one in each.
    pairs = -(-_LEAST_PAIRS // plan.batch_size) * plan.batch_size
    if _are_lines(corpus):
        eos = corpus.vocabulary.eos_id
        return SentencePairs(text, eos, pairs, most_tokens=_TOKENS, seed=plan.seed)
    return SegmentPairs(text, pairs, segment=_TOKENS, seed=plan.seed)


def held_out(plan: Plan, corpus: Corpus) -> list[HeldOutPairs]:
    """Returns the callback that looks at pairs of the validation text.

    None if there is no BMI, or that text is too short for pairs.
    """
    if not plan.bmi:
        return []
    try:
        return [HeldOutPairs(_pairs(plan, corpus, corpus.valid))]
    except ValueError:
        return []


def with_bmi(
    plan: Plan, corpus: Corpus, model: keras.Model, options: dict[str, Any]
) -> keras.Model:
    """Returns BMI around the model of a plan."""
    return BootstrappedMutualInformation(
        model,
        discriminator=PairDiscriminator(seed=plan.seed),
        weight=_weight(plan, corpus),
        raml_weight=plan.bmi_raml_weight,
        pooling=plan.bmi_pooling,  # type: ignore[arg-type]
        phase_two=plan.bmi_phase_two,  # type: ignore[arg-type]
        end_id=corpus.vocabulary.eos_id if _are_lines(corpus) else None,
        **options,
    )


def _weight(plan: Plan, corpus: Corpus) -> Coefficient:
    if plan.bmi_half_life is None:
        return plan.bmi_weight
    steps = steps_of(len(corpus.train), plan.batch_size, plan.window)
    return keras.optimizers.schedules.ExponentialDecay(
        plan.bmi_weight, plan.bmi_half_life * steps, 0.5
    )


def outcome(plan: Plan, corpus: Corpus, curve: Sequence[Mapping[str, Any]]) -> str:
    """Returns what BMI did, for a person.

    Args:
        plan: The plan.
        corpus: The corpus.
        curve: What was logged, epoch by epoch.
    """
    kind = "neighbouring lines" if _are_lines(corpus) else f"segments of {_TOKENS}"
    said = f"BMI: pairs of {kind}"
    last = curve[-1] if curve else {}
    for name, where in (("", "in training"), ("val_", "of the validation text")):
        share = last.get(f"{name}pair_accuracy")
        if share is not None:
            said += f", {100 * share:.0f} % told apart {where}"
    if last.get("val_mine") is not None:
        said += f" (50 %: none; MINE {last['val_mine']:.2f} nats)"
    if plan.bmi_switch is not None and len(curve) <= plan.bmi_switch:
        said += (
            f"; the second phase never began: training ended before epoch "
            f"{plan.bmi_switch + 1}"
        )
    return said


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

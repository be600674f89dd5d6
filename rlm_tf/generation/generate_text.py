"""Continues texts with a language model and its vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import keras
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.generation.generate import generate
from rlm_tf.generation.stepwise import StepwiseModel


@overload
def generate_text(
    model: keras.Model | StepwiseModel,
    vocabulary: Vocabulary,
    prompt: str,
    max_tokens: int = ...,
    **options: Any,
) -> str: ...


@overload
def generate_text(
    model: keras.Model | StepwiseModel,
    vocabulary: Vocabulary,
    prompt: Sequence[str],
    max_tokens: int = ...,
    **options: Any,
) -> list[str]: ...


def generate_text(
    model: keras.Model | StepwiseModel,
    vocabulary: Vocabulary,
    prompt: str | Sequence[str],
    max_tokens: int = 100,
    *,
    seed: int = 1,
    top_p: float = 0.95,
    **options: Any,
) -> str | list[str]:
    """Returns what a language model says after a text, or after each of several.

    As in training and in exports, `<eos>` stands before every text, and what no text
    has (`Vocabulary.never_in_text`) is never said. A SavedModel's `generate` gives the
    same for the same numbers.

    Args:
        model: A language model, or a stepwise one such as `MixtureStepwise`.
        vocabulary: The vocabulary that it was trained with.
        prompt: A text, which may be empty, or several.
        max_tokens: Number of new tokens.
        seed: Of the draws.
        top_p: Share of the probability that may be drawn, the most probable first.
        **options: Others of `generate`, `temperature` for one.

    Returns:
        The new text, without the prompt, or a list of them.

    Raises:
        ValueError: If a number is out of range, or a word of the prompt unknown where
            the vocabulary has no `<unk>`.
    """
    prompts = [prompt] if isinstance(prompt, str) else [*prompt]
    ids = [[vocabulary.eos_id, *vocabulary.encode(text)] for text in prompts]

    @tf.function(autograph=False)
    def continued(rows: tf.RaggedTensor) -> tf.RaggedTensor:
        return generate(
            model,
            rows,
            max_tokens,
            seed=seed,
            top_p=top_p,
            **{"banned_tokens": vocabulary.never_in_text, **options},
        )

    found = continued(tf.ragged.constant(ids, tf.int32)).to_list() if ids else []
    texts = [vocabulary.decode(row) for row in found]
    return texts[0] if isinstance(prompt, str) else texts

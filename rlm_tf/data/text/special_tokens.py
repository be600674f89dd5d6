"""The tokens of encoders that no text has: padding, unknown, [CLS], [SEP], [MASK]."""

from __future__ import annotations

from typing import NamedTuple

from rlm_tf.data.text.tokenisation import EOS, UNK
from rlm_tf.data.text.vocabulary import Vocabulary

PADDING, CLS, MASK = "<pad>", "[CLS]", "[MASK]"
# [SEP] ends a text, and so is what other vocabularies call the end of a line.
ENCODER_RESERVED = (PADDING, UNK, CLS, EOS, MASK)


class SpecialIds(NamedTuple):
    """Ids of special tokens.

    Attributes:
        padding: Of what fills rows up.
        unknown: Of a token that is none of the vocabulary.
        cls: Of [CLS], which begins a row.
        sep: Of [SEP], which ends each text of a row: the vocabulary's `<eos>`.
        mask: Of [MASK].
    """

    padding: int
    unknown: int
    cls: int
    sep: int
    mask: int

    def check(self, function: str, vocabulary_size: int) -> None:
        """Raises ValueError if they are not distinct, or a vocabulary has not all."""
        if len(set(self)) < len(self) or not 0 <= min(self) <= max(self) < (
            vocabulary_size
        ):
            raise ValueError(
                f"{function}: `special` must be distinct ids below {vocabulary_size}, "
                f"found {', '.join(map(str, self))}."
            )


# Of `encoder_vocabulary`.
FIRST_IDS = SpecialIds(*range(len(ENCODER_RESERVED)))


def special_ids(vocabulary: Vocabulary) -> SpecialIds:
    """Returns the ids of an encoder's special tokens, 0 to 4.

    Raises:
        ValueError: If the vocabulary is none of an encoder.
    """
    found = vocabulary.tokens[: len(ENCODER_RESERVED)]
    if tuple(found) != ENCODER_RESERVED:
        raise ValueError(
            "special_ids: the vocabulary of an encoder begins with "
            f"{', '.join(ENCODER_RESERVED)}, found {', '.join(map(repr, found))}: make "
            "it by `encoder_vocabulary`."
        )
    return FIRST_IDS


def encoder_vocabulary(
    text: str | bytes,
    max_size: int | None = None,
    *,
    rule: str = "sentencepiece-unigram",
    normalisation: str = "identity",
) -> Vocabulary:
    """Returns a vocabulary of subwords that are learnt from a text, for an encoder.

    Args:
        text: The training text, and nothing else.
        max_size: Its size; None: by the length of the text (see `Vocabulary.build`).
        rule: "sentencepiece-unigram" or "sentencepiece-bpe".
        normalisation: See `Vocabulary.build`.

    Raises:
        ValueError: As `Vocabulary.build`.
    """
    return Vocabulary.build(
        text,
        rule,
        max_size=max_size,
        reserved=ENCODER_RESERVED,
        normalisation=normalisation,
    )

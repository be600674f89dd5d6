"""What a corpus is like under its vocabulary, and what a person should know of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rlm_tf.data.text import tokenisation
from rlm_tf.data.text.vocabulary import Vocabulary

# Han, kana, Thai, Lao, Tibetan, Burmese, Khmer: scripts that put no blanks between
# words.
UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Characters that tell what the script is.
_SAMPLE = 1_000_000
_MOST_UNKNOWN = 0.05
_LEAST_TYPES = 1000
_MOST_UNSPACED = 0.1


class SplitSizes(NamedTuple):
    """A number for each split of a corpus."""

    train: int
    valid: int
    test: int


class CorpusSummary(NamedTuple):
    """Numbers of a corpus under its vocabulary.

    Attributes:
        rule: The tokenisation rule.
        vocabulary_size: V.
        tokens: Of each split.
        unknown: Share of `<unk>` among the tokens of each split.
        tokens_per_word: Of the training text; words are what stands between ASCII
            blanks, as `wc -w` counts them.
        types_per_million: Distinct tokens for each million characters of the training
            text (of about its first million bytes where it is longer).
        unspaced: Share of characters of scripts without blanks between words.
    """

    rule: str
    vocabulary_size: int
    tokens: SplitSizes
    unknown: tuple[float, float, float]
    tokens_per_word: float
    types_per_million: float
    unspaced: float

    def lines(self) -> list[str]:
        """Returns the numbers, for people."""
        unknown = " / ".join(f"{100 * share:.1f} %" for share in self.unknown)
        tokens = " / ".join(f"{count:,}" for count in self.tokens)
        return [
            f"vocabulary: {self.vocabulary_size:,} ({self.rule}), "
            f"{self.tokens_per_word:.2f} tokens a word",
            f"tokens (train / valid / test): {tokens}; <unk>: {unknown}",
        ]

    def warnings(self) -> list[str]:
        """Returns a line for each thing that makes perplexities say little."""
        found = []
        worst = max(self.unknown)
        if worst > _MOST_UNKNOWN:
            found.append(
                f"{100 * worst:.0f} % of the tokens of a split are <unk>: perplexity "
                "counts a guess of <unk> as a hit. Subwords leave nothing unknown "
                "(rule sentencepiece-unigram)."
            )
        of_words = self.rule in ("words", "whitespace")
        if of_words and self.unspaced > _MOST_UNSPACED:
            found.append(
                f"{100 * self.unspaced:.0f} % of the characters are of a script "
                f"without blanks between words: the rule {self.rule!r} takes whole "
                "sentences for words. Subwords suit it "
                "(rule sentencepiece-unigram)."
            )
        if of_words and self.types_per_million < _LEAST_TYPES:
            found.append(
                f"{self.types_per_million:,.0f} different words in a million "
                f"characters are few (most texts have more than {_LEAST_TYPES:,}): "
                f"does the rule {self.rule!r} suit this text?"
            )
        return found


def summarise(
    vocabulary: Vocabulary, texts: Mapping[str, bytes], ids: Mapping[str, np.ndarray]
) -> tuple[CorpusSummary, SplitSizes, SplitSizes]:
    """Returns the summary of a corpus, its bytes and its words.

    Args:
        vocabulary: Its vocabulary.
        texts: The text of each split.
        ids: The tokens of each split.

    Returns:
        The summary; the UTF-8 bytes of each split, of what a vocabulary that
        normalises text makes of it; the words between ASCII blanks of each split.
    """
    splits = SplitSizes._fields
    read = {split: texts[split] for split in splits}
    if vocabulary.normalises:
        read = {split: vocabulary.decode(ids[split]).encode() for split in splits}
    num_bytes = SplitSizes(*(len(read[split]) for split in splits))
    num_words = SplitSizes(*(_count_words(read[split]) for split in splits))
    sample = tokenisation.as_text(texts["train"][:_SAMPLE])
    share = min(_SAMPLE / max(len(texts["train"]), 1), 1.0)
    types = len(np.unique(ids["train"][: int(share * ids["train"].size)]))
    unknown = tuple(
        float(np.mean(ids[split] == vocabulary.unk_id))
        if vocabulary.unk_id is not None
        else 0.0
        for split in splits
    )
    summary = CorpusSummary(
        vocabulary.rule,
        len(vocabulary),
        SplitSizes(*(ids[split].size for split in splits)),
        (unknown[0], unknown[1], unknown[2]),
        ids["train"].size / max(num_words.train, 1),
        types * 1e6 / max(len(sample), 1),
        len(UNSPACED.findall(sample)) / max(len(sample), 1),
    )
    return summary, num_bytes, num_words


def _count_words(text: bytes) -> int:
    """Returns how many words stand between ASCII blanks."""
    codes = np.frombuffer(text, np.uint8)
    blank = (codes == 0x20) | ((codes >= 0x09) & (codes <= 0x0D))
    starts = ~blank
    starts[1:] &= blank[:-1]
    return int(np.count_nonzero(starts))

"""Subword pieces of a text: training a SentencePiece model, and lines made safe for it.

SentencePiece writes a blank as U+2581, so that a U+2581 of the text would come back as
a blank. It is escaped: U+001A, a control character that texts hardly have, becomes
itself and `0`, and U+2581 becomes U+001A and `1`.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterable, Sequence

from rlm_tf.data.text import tokenisation
from rlm_tf.data.text.tokenisation import EOS, UNK

_LOGGER = logging.getLogger(__name__)

NORMALISATIONS = ("identity", "nfkc")

# What stands for a newline where ids become text: a byte piece, which no line has.
NEWLINE_PIECE = "<0x0A>"
# In order, as regular expressions of Python and of TensorFlow alike.
ESCAPES = (("\x1a", "\x1a0"), ("\u2581", "\x1a1"))
UNESCAPES = (("\x1a1", "\u2581"), ("\x1a0", "\x1a"))

# The largest sum of a line's bytes that SentencePiece reads; by default it skips lines
# above 4,192 bytes without a word.
_LONGEST_LINE = 1 << 30
_TOO_HIGH = re.compile(r"[Vv]ocabulary size (?:is )?too high.*?<= *(\d+)", re.DOTALL)
_TOO_LOW = re.compile(
    r"[Vv]ocabulary size is smaller than required_chars. \d+ vs (\d+)"
)


def escaped(text: str) -> str:
    """Returns a text that SentencePiece gives back as it was, once unescaped."""
    for old, new in ESCAPES:
        text = text.replace(old, new)
    return text


def train_pieces(
    texts: Iterable[str | bytes],
    rule: str,
    max_size: int | None = None,
    reserved: Sequence[str] = (UNK, EOS),
    normalisation: str = "identity",
) -> bytes:
    """Trains a SentencePiece model of the lines of texts; one thread, repeatable.

    Every byte has a piece, so that nothing is unknown. A size that the text is too
    small or has too many characters for is changed to the nearest possible one, and a
    line of the log says so.

    Args:
        texts: The training texts, and nothing else.
        rule: One of `tokenisation.SUBWORD_RULES`.
        max_size: Size of the vocabulary; None: a piece for each 120 bytes of text, at
            least 500 and at most 16,000.
        reserved: Names of the first ids, in order, `<unk>` and `<eos>` among them; no
            text has them.
        normalisation: `identity`, or `nfkc`: compatible characters become one.

    Returns:
        The model, serialised.

    Raises:
        ValueError: If an argument is impossible, or the texts have nothing to learn
            from.
    """
    if not {UNK, EOS} <= set(reserved) or len(set(reserved)) != len(reserved):
        raise ValueError(
            f"Vocabulary.build: `reserved` must be distinct names, {UNK} and {EOS} "
            f"among them, found {', '.join(reserved) or 'nothing'}."
        )
    if normalisation not in NORMALISATIONS:
        raise ValueError(
            f"Vocabulary.build: `normalisation` must be one of "
            f"{', '.join(NORMALISATIONS)}; found {normalisation!r}."
        )
    lines = [
        line
        for text in texts
        for line in escaped(tokenisation.as_text(text)).split("\n")
        if line
    ]
    if not lines:
        raise ValueError("Vocabulary.build: the text has nothing to learn from.")
    size = max_size
    if size is None:
        num_bytes = sum(len(line.encode()) + 1 for line in lines)
        size = min(max(num_bytes // 120, 500), 16_000)
    return _train_clamped(lines, rule, size, reserved, normalisation)


def _train_clamped(
    lines: list[str],
    rule: str,
    wanted: int,
    reserved: Sequence[str],
    normalisation: str,
) -> bytes:
    """Trains; takes the nearest possible size where the wanted one is not."""
    size, tried = wanted, set[int]()
    while True:
        tried.add(size)
        try:
            model = _train(lines, rule, size, reserved, normalisation)
            break
        except RuntimeError as error:
            found = _TOO_HIGH.search(str(error)) or _TOO_LOW.search(str(error))
            if found is None or int(found[1]) in tried:
                raise ValueError(
                    "Vocabulary.build: SentencePiece cannot learn from this text: "
                    f"{' '.join(str(error).split())}"
                ) from None
            size = int(found[1])
    if size != wanted:
        _LOGGER.warning(
            "Vocabulary.build: %s pieces are not possible for this text under the rule "
            "%s; took %s.",
            f"{wanted:,}",
            rule,
            f"{size:,}",
        )
    return model


def _train(
    lines: list[str], rule: str, size: int, reserved: Sequence[str], normalisation: str
) -> bytes:
    # Here, so that only who trains pieces needs it.
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=rule.removeprefix("sentencepiece-"),
        vocab_size=size,
        normalization_rule_name=normalisation,
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        # Two threads train other pieces.
        num_threads=1,
        max_sentence_length=_LONGEST_LINE,
        character_coverage=0.9995,
        byte_fallback=True,
        unk_id=reserved.index(UNK),
        unk_piece=UNK,
        eos_id=reserved.index(EOS),
        eos_piece=EOS,
        bos_id=-1,
        pad_id=-1,
        # They get the ids that are left, in order.
        control_symbols=[name for name in reserved if name not in (UNK, EOS)],
        minloglevel=2,
    )
    return model.getvalue()

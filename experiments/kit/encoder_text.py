"""The text that studies pre-train encoders on."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from experiments.kit.encoder_config import EncoderConfig
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.data import Segments, Vocabulary, encoder_vocabulary, load_corpus

# A line that WikiText begins an article with, as its vocabulary of words has it.
_TITLE = re.compile(r"^ ?= [^=].*[^=] = ?$")
# Signs within words and numbers, which WikiText parts; and its word for rare ones,
# which would be three pieces.
_JOINED = {" @-@ ": "-", " @,@ ": ",", " @.@ ": ".", "<unk>": "unk"}


class EncoderText(NamedTuple):
    """Rows of pieces.

    Attributes:
        vocabulary: Learnt from the training text, or given.
        train: To learn from.
        valid: To look at while training, and to choose on.
        test: To be judged on.
        digest: Of all of them.
    """

    vocabulary: Vocabulary
    train: Segments
    valid: Segments
    test: Segments
    digest: str


def read_encoder_text(
    config: EncoderConfig, vocabulary: Vocabulary | None = None
) -> EncoderText:
    """Reads a corpus, and returns its text in rows.

    Articles of WikiText are documents; of other corpora the whole is one.

    Args:
        config: Which corpus, how much of it, rows of what length.
        vocabulary: What cuts the text; None: learnt from the training text.
    """
    corpus = load_corpus(config.corpus)
    train = corpus.train[: int(len(corpus.train) * config.fraction)]
    texts = {"train": train, "valid": corpus.valid, "test": corpus.test}
    is_wiki = config.corpus.startswith("wikitext")
    digest = hashlib.sha256()
    plain = {}
    for name, tokens in texts.items():
        text = corpus.vocabulary.decode(tokens)
        plain[name] = articles(text) if is_wiki else text
        digest.update(plain[name].encode())
    with native_silence():
        vocabulary = vocabulary or encoder_vocabulary(plain["train"], config.pieces)
        rows = {
            name: Segments(
                text,
                vocabulary,
                config.length,
                config.batch_size if name == "train" else 1,
                documents=is_wiki,
            )
            for name, text in plain.items()
        }
    return EncoderText(vocabulary, **rows, digest=digest.hexdigest())


def articles(text: str) -> str:
    """Returns a text of WikiText as articles, parted by empty lines.

    Args:
        text: Words parted by blanks, a line for each paragraph.
    """
    for parted, joined in _JOINED.items():
        text = text.replace(parted, joined)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    parts = [f"\n{line}" if _TITLE.match(line) else line for line in lines]
    return "\n".join(parts).lstrip("\n")

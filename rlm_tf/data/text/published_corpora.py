"""What is known about the published corpora: files, counts, where to get them."""

from __future__ import annotations

import dataclasses

SPLITS = ("train", "valid", "test")


@dataclasses.dataclass(frozen=True)
class PublishedCorpus:
    """A corpus that comes as files.

    Attributes:
        folders: Folders below the data folder it may be in; `""` is the data folder.
        files: Name of the file of each split, without `.gz` or `.zip`; one name for all
            where one file is cut.
        archives: Zip archives, as published, that hold the files.
        rule: Tokenisation rule of its vocabulary.
        vocabulary_of: The splits that the vocabulary is made of.
        tokens: Published number of tokens of each split, one `<eos>` for every line;
            None where no source states them, so that nothing can be checked.
        vocabulary_size: Published number of distinct tokens, or None.
        source: Where the files are to be had.
        licence: What may be done with them.
        url: Stable address of the official file, or None.
        sha256: Checksum of what is at `url`.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    archives: tuple[str, ...]
    rule: str
    vocabulary_of: tuple[str, ...]
    tokens: tuple[int, int, int] | None
    vocabulary_size: int | None
    source: str
    licence: str
    url: str | None = None
    sha256: str | None = None


_PTB_SOURCE = (
    "the Linguistic Data Consortium (LDC99T42); the files in the form used here are in "
    "simple-examples.tgz of the RNNLM toolkit (Brno University of Technology)"
)
_PTB_LICENCE = "LDC User Agreement; not to be passed on"
_WIKITEXT_SOURCE = (
    "the WikiText page of Salesforce Research ({archive}); data hubs call it {hub}"
)
_WIKITEXT_LICENCE = "CC BY-SA 3.0, text of Wikipedia"
_MAHONEY = "Matt Mahoney's page mattmahoney.net/dc/textdata.html ({archive})"


def _multilingual(language: str) -> PublishedCorpus:
    """The larger form of the Multilingual Wikipedia Corpus: 600 / 60 / 60 articles."""
    name = f"wiki_{language}"
    folder = f"{name}/ptb_format_large"
    return PublishedCorpus(
        folders=(f"mwc/{folder}", folder, ""),
        files=(f"{name}.tr.raw.unk", f"{name}.va.raw.unk", f"{name}.te.raw.unk"),
        archives=(),
        rule="characters",
        vocabulary_of=SPLITS,
        tokens=None,
        vocabulary_size=None,
        source="the page of the Multilingual Wikipedia Corpus (k-kawakami.com)",
        licence="CC BY-SA, text of Wikipedia",
    )


PUBLISHED = {
    "ptb": PublishedCorpus(
        folders=("ptb", "simple-examples/data", ""),
        files=("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"),
        archives=("ptb.zip",),
        rule="whitespace",
        vocabulary_of=("train",),
        tokens=(929_589, 73_760, 82_430),
        vocabulary_size=10_000,
        source=_PTB_SOURCE,
        licence=_PTB_LICENCE,
    ),
    "ptb-char": PublishedCorpus(
        folders=("ptb", "ptb-char", "simple-examples/data", ""),
        files=("ptb.char.train.txt", "ptb.char.valid.txt", "ptb.char.test.txt"),
        archives=("ptb.char.zip",),
        rule="characters",
        vocabulary_of=("train",),
        tokens=(5_017_482, 393_042, 442_423),
        vocabulary_size=50,
        source=_PTB_SOURCE,
        licence=_PTB_LICENCE,
    ),
    "wikitext-2": PublishedCorpus(
        folders=("wikitext-2", "wikitext-2-v1", ""),
        files=("wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),
        archives=("wikitext-2-v1.zip",),
        rule="whitespace",
        vocabulary_of=SPLITS,
        tokens=(2_088_628, 217_646, 245_569),
        vocabulary_size=33_278,
        source=_WIKITEXT_SOURCE.format(
            archive="wikitext-2-v1.zip", hub="wikitext-2-v1"
        ),
        licence=_WIKITEXT_LICENCE,
    ),
    "wikitext-103": PublishedCorpus(
        folders=("wikitext-103", "wikitext-103-v1", ""),
        files=("wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),
        archives=("wikitext-103-v1.zip",),
        rule="whitespace",
        vocabulary_of=SPLITS,
        tokens=(103_227_021, 217_646, 245_569),
        vocabulary_size=267_735,
        source=_WIKITEXT_SOURCE.format(
            archive="wikitext-103-v1.zip", hub="wikitext-103-v1"
        ),
        licence=_WIKITEXT_LICENCE,
    ),
    "enwik8": PublishedCorpus(
        folders=("enwik8", ""),
        files=("enwik8",),
        archives=(),
        rule="bytes",
        vocabulary_of=SPLITS,
        tokens=(90_000_000, 5_000_000, 5_000_000),
        vocabulary_size=None,
        source=_MAHONEY.format(archive="enwik8.zip"),
        licence="GFDL / CC BY-SA, text of Wikipedia",
    ),
    "text8": PublishedCorpus(
        folders=("text8", ""),
        files=("text8",),
        archives=(),
        rule="characters",
        vocabulary_of=SPLITS,
        tokens=(90_000_000, 5_000_000, 5_000_000),
        vocabulary_size=28,  # the 27 published symbols and `<eos>`, which never occurs
        source=_MAHONEY.format(archive="text8.zip"),
        licence="GFDL / CC BY-SA, text of Wikipedia",
    ),
    "mwc-en": _multilingual("en"),
    "mwc-fi": _multilingual("fi"),
    "tiny-shakespeare": PublishedCorpus(
        folders=("tinyshakespeare", "tiny-shakespeare", ""),
        files=("input.txt",),
        archives=(),
        rule="characters",
        vocabulary_of=SPLITS,
        tokens=(1_003_854, 55_770, 55_770),
        vocabulary_size=65,
        source="the char-rnn project (github.com/karpathy/char-rnn)",
        licence="public domain",
        url=(
            "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
            "tinyshakespeare/input.txt"
        ),
        sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
}

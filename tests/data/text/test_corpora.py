"""Corpora: names, files, splits, published counts, and what bad files get."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import pathlib
import time
import zipfile

import numpy as np
import pytest

from rlm_tf.data import Vocabulary, corpus_names, load_corpus, load_text_corpus
from rlm_tf.data.text.published_corpora import PUBLISHED, SPLITS
from rlm_tf.data.text.python_docs import SHARES, python_docs
from tests.data.text.corpus_files import COUNTS, TEXTS, gz, packed, plain, zipped


def expect(monkeypatch: pytest.MonkeyPatch, name: str, **changes) -> None:
    """Makes small files the published ones."""
    changed = dataclasses.replace(PUBLISHED[name], **changes)
    monkeypatch.setitem(PUBLISHED, name, changed)


# === Embedded ===


def test_python_docs_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLM_DATA_DIR", raising=False)
    corpus = load_corpus()
    assert corpus.name == "python-docs"
    sizes = [getattr(corpus, split).size for split in SPLITS]
    assert 50_000 < sum(sizes) < 200_000
    for size, share in zip(sizes, SHARES.values(), strict=True):
        assert abs(size / sum(sizes) - share) < 0.05
    assert corpus.train.dtype == np.int32 and corpus.vocabulary.rule == "words"
    unknown = np.mean(corpus.valid == corpus.vocabulary.unk_id)
    assert 0 < unknown < 0.15
    assert "statement" in corpus.vocabulary.decode(corpus.train)


def test_python_docs_splits_share_no_long_paragraph() -> None:
    texts = python_docs()
    seen = {line for line in texts["train"].splitlines() if len(line) >= 60}
    valid = {line for line in texts["valid"].splitlines() if len(line) >= 60}
    test = {line for line in texts["test"].splitlines() if len(line) >= 60}
    assert seen and valid and test
    assert not (seen & valid or seen & test or valid & test)


def test_python_docs_is_the_same_every_time() -> None:
    assert python_docs() == python_docs()
    first, second = load_corpus("python-docs"), load_corpus("python-docs")
    np.testing.assert_array_equal(first.train, second.train)
    assert first.vocabulary == second.vocabulary


# === Published: finding and reading files ===


@pytest.mark.parametrize("write", [plain, gz, zipped])
@pytest.mark.parametrize("folder", ["ptb", "simple-examples/data", "."])
def test_files_plain_or_packed_in_folders(
    tmp_path, monkeypatch, write, folder: str
) -> None:
    expect(monkeypatch, "ptb", tokens=COUNTS, vocabulary_size=5)
    place = tmp_path / folder
    place.mkdir(parents=True, exist_ok=True)
    for split, text in TEXTS.items():
        write(place, f"ptb.{split}.txt", text)
    corpus = load_corpus("ptb", tmp_path)
    assert corpus.vocabulary.tokens == ("<eos>", "a", "<unk>", "b", "c")
    assert corpus.train.tolist() == [1, 3, 1, 2, 0, 0, 1, 4, 0]
    assert corpus.valid.tolist() == [1, 3, 0]
    monkeypatch.setenv("RLM_DATA_DIR", str(tmp_path))
    np.testing.assert_array_equal(load_corpus("ptb").test, corpus.test)
    with pytest.raises(ValueError, match="read-only"):
        corpus.train[0] = 0


@pytest.mark.parametrize("name", ["wikitext-2", "wikitext-103"])
def test_archive_as_published(tmp_path, monkeypatch, name: str) -> None:
    expect(monkeypatch, name, tokens=COUNTS, vocabulary_size=5)
    with zipfile.ZipFile(tmp_path / f"{name}-v1.zip", "w") as archive:
        archive.mkdir(name)
        for split, text in TEXTS.items():
            archive.writestr(f"{name}/wiki.{split}.tokens", text)
    assert load_corpus(name, tmp_path).train.size == COUNTS[0]


def test_penn_treebank_characters(tmp_path, monkeypatch) -> None:
    expect(monkeypatch, "ptb-char", tokens=(5, 2, 3), vocabulary_size=4)
    for split, text in {
        "train": "a _ b a \n ",
        "valid": "a \n ",
        "test": "b _ \n ",
    }.items():
        plain(tmp_path, f"ptb.char.{split}.txt", text)
    corpus = load_corpus("ptb-char", tmp_path)
    assert corpus.vocabulary.decode(corpus.train) == "a ba\n"
    plain(tmp_path, "ptb.char.valid.txt", "a \n ab \n")
    with pytest.raises(ValueError, match=r"valid.txt, line 2: expected single symbols"):
        load_corpus("ptb-char", tmp_path)


@pytest.mark.parametrize("language", ["en", "fi"])
def test_multilingual_wikipedia_in_its_published_folders(tmp_path, language):
    folder = tmp_path / "mwc" / f"wiki_{language}" / "ptb_format_large"
    folder.mkdir(parents=True)
    for split, text in (("tr", "\u00e4b a\n"), ("va", "ba\n"), ("te", "c\n")):
        path = folder / f"wiki_{language}.{split}.raw.unk"
        path.write_text(text, "utf-8")
    corpus = load_corpus(f"mwc-{language}", tmp_path)
    assert [len(t) for t in (corpus.train, corpus.valid, corpus.test)] == [5, 3, 2]
    assert corpus.vocabulary.decode(corpus.train) == "\u00e4b a\n"
    (folder / f"wiki_{language}.te.raw.unk").unlink()
    with pytest.raises(FileNotFoundError, match=f"wiki_{language}.te.raw.unk"):
        load_corpus(f"mwc-{language}", tmp_path)


@pytest.mark.parametrize("name", ["enwik8", "text8", "tiny-shakespeare"])
def test_one_file_is_cut(tmp_path, monkeypatch, name: str) -> None:
    text = "abcdefgh\u00e9" if name == "enwik8" else "abcdefghij"
    expect(monkeypatch, name, tokens=(7, 2, 1), vocabulary_size=None)
    (tmp_path / PUBLISHED[name].files[0]).write_text(text)
    corpus = load_corpus(name, tmp_path)
    parts = [getattr(corpus, split) for split in SPLITS]
    assert [part.size for part in parts] == [7, 2, 1]
    assert corpus.vocabulary.decode(np.concatenate(parts)) == text
    (tmp_path / PUBLISHED[name].files[0]).write_text(text[:-1])
    with pytest.raises(ValueError, match=r"expected 10 bytes, found .*truncated"):
        load_corpus(name, tmp_path)


# === Published: what is wrong gets one clear message ===


@pytest.fixture
def small_ptb(tmp_path, monkeypatch) -> pathlib.Path:
    expect(monkeypatch, "ptb", tokens=COUNTS, vocabulary_size=5)
    for split, text in TEXTS.items():
        plain(tmp_path, f"ptb.{split}.txt", text)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" a b\n c\0d\n", "line 2: expected text, found a zero byte"),
        (b" a b\n\n \xe9t\xe9\n", "line 3: expected UTF-8 text, found the byte 0xe9"),
        (b" a b a\n a", r"line 2 \(the last\): expected 9 tokens.*found 5.*truncated"),
        (TEXTS["train"].encode() * 2, "expected 9 tokens.*found 18"),
        (b" a b a b\n \n a b\n", "test.txt, line 1: unknown token 'c'"),
        (b" a b c d\n \n e c\n", "expected 5 distinct tokens in ptb, found 6"),
    ],
)
def test_wrong_files(small_ptb, content: bytes, message: str) -> None:
    (small_ptb / "ptb.train.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_corpus("ptb", small_ptb)
    assert str(small_ptb) in str(caught.value)


def test_damaged_archives(small_ptb) -> None:
    (small_ptb / "ptb.valid.txt").unlink()
    packed = small_ptb / "ptb.valid.txt.gz"
    for content in (b"no gzip", gzip.compress(TEXTS["valid"].encode())[:-4]):
        packed.write_bytes(content)
        with pytest.raises(ValueError, match=r"valid.txt.gz: cannot be read"):
            load_corpus("ptb", small_ptb)
    packed.unlink()
    (small_ptb / "ptb.valid.txt.zip").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"valid.txt.zip: cannot be read"):
        load_corpus("ptb", small_ptb)
    with zipfile.ZipFile(small_ptb / "ptb.valid.txt.zip", "w") as archive:
        archive.writestr("x", "a")
        archive.writestr("y", "b")
    with pytest.raises(ValueError, match=r"one file 'ptb.valid.txt'.*found x, y"):
        load_corpus("ptb", small_ptb)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [(6, 1, "encrypted"), (8, 99, "compression"), (14, 1, "CRC")],
)
def test_archives_that_cannot_be_unpacked(tmp_path, offset, value, message) -> None:
    path = tmp_path / "t.zip"
    packed(b"a b c", ".zip", "t", path)
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")  # the same fields, two bytes on
    content[offset] = content[directory + 2 + offset] = value
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"t.zip: cannot be read: .*{message}"):
        load_text_corpus(path)


def test_missing_data_says_where_and_how(tmp_path, monkeypatch) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"(?s)ptb.train.txt.*LDC99T42"
    ) as caught:
        load_corpus("ptb", tmp_path)
    assert str(tmp_path / "ptb") in str(caught.value)
    plain(tmp_path, "ptb.train.txt", "a\n")
    with pytest.raises(FileNotFoundError, match=r"no ptb.valid.txt, ptb.test.txt "):
        load_corpus("ptb", tmp_path)
    monkeypatch.delenv("RLM_DATA_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match=r"RLM_DATA_DIR.*enwik8.zip"):
        load_corpus("enwik8")


def test_unknown_name() -> None:
    with pytest.raises(
        ValueError, match=r"'bnc'.*python-docs, ptb, .*tiny-shakespeare"
    ):
        load_corpus("bnc")
    assert len(corpus_names()) == 10


def test_download_only_when_asked_and_checked(tmp_path, monkeypatch) -> None:
    source = tmp_path / "source.txt"
    source.write_text("abcdefghij")
    expect(
        monkeypatch,
        "tiny-shakespeare",
        tokens=(8, 1, 1),
        vocabulary_size=None,
        url=source.as_uri(),
        sha256=hashlib.sha256(b"abcdefghij").hexdigest(),
    )
    place = tmp_path / "data"
    with pytest.raises(FileNotFoundError, match="download=True"):
        load_corpus("tiny-shakespeare", place)
    corpus = load_corpus("tiny-shakespeare", place, download=True)
    assert corpus.train.size == 8
    source.unlink()
    assert load_corpus("tiny-shakespeare", place).test.size == 1
    with pytest.raises(FileNotFoundError, match="could not be fetched"):
        load_corpus("tiny-shakespeare", tmp_path / "other", download=True)
    source.write_text("abcdefghiX")
    with pytest.raises(FileNotFoundError, match=r"could not be fetched.*corrupted"):
        load_corpus("tiny-shakespeare", tmp_path / "third", download=True)


# === Real files ===


@pytest.mark.parametrize(
    ("name", "sizes", "vocabulary_size"),
    [
        ("ptb", (929_589, 73_760, 82_430), 10_000),
        ("ptb-char", (5_017_482, 393_042, 442_423), 50),
        ("wikitext-2", (2_088_628, 217_646, 245_569), 33_278),
        ("tiny-shakespeare", (1_003_854, 55_770, 55_770), 65),
    ],
)
def test_published_corpora(data_dir, name: str, sizes, vocabulary_size: int) -> None:
    began = time.perf_counter()
    corpus = load_corpus(name, data_dir)
    assert time.perf_counter() - began < 20
    assert tuple(getattr(corpus, split).size for split in SPLITS) == sizes
    assert len(corpus.vocabulary) == vocabulary_size
    counts = np.zeros(vocabulary_size, np.int64)
    of = PUBLISHED[name].vocabulary_of
    for split in of:
        counts += np.bincount(getattr(corpus, split), minlength=vocabulary_size)
    tokens = corpus.vocabulary.tokens
    ranked = sorted(range(len(tokens)), key=lambda i: (-counts[i], tokens[i]))
    assert ranked == list(range(len(tokens)))


def test_penn_treebank_reads_back(data_dir) -> None:
    corpus = load_corpus("ptb", data_dir)
    text = (data_dir / "ptb" / "ptb.valid.txt").read_text()
    lines = [line.strip() for line in text.splitlines()]
    assert corpus.vocabulary.decode(corpus.valid).splitlines() == lines
    graph = corpus.vocabulary.encode_tensor([text]).values
    np.testing.assert_array_equal(graph, corpus.valid)
    assert isinstance(corpus.vocabulary, Vocabulary)

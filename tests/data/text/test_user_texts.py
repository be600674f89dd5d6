"""A user's own text files, and arbitrary bytes in place of every corpus."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.kit.run_settings import training_text
from rlm_tf.data import load_corpus, load_text_corpus
from rlm_tf.data.text.published_corpora import PUBLISHED, SPLITS
from rlm_tf.data.text.tokenisation import RULES
from tests.data.text.corpus_files import TEXTS, packed, plain


def test_one_file_is_cut_at_line_ends(tmp_path) -> None:
    lines = [f"line number {i} of many , it is\n" for i in range(100)]
    path = tmp_path / "text.txt"
    path.write_text("".join(lines)[:-1])  # a last line without its end counts too
    for corpus in (load_corpus(str(path)), load_text_corpus(path)):
        eos = corpus.vocabulary.eos_id
        ends = [int(np.sum(getattr(corpus, split) == eos)) for split in SPLITS]
        assert sum(ends) == 100
        np.testing.assert_allclose(ends, [90, 5, 5], atol=1)
        assert corpus.vocabulary.unk_id is not None


def test_three_files_under_every_rule(tmp_path) -> None:
    for split, text in TEXTS.items():
        plain(tmp_path, split, text)
    paths = [tmp_path / split for split in SPLITS]
    for rule in RULES:
        corpus = load_text_corpus(*paths, rule=rule, min_count=None)
        assert corpus.vocabulary.rule == rule and corpus.name == str(paths[0])
        assert np.sum(corpus.train == corpus.vocabulary.eos_id) == 3
    limited = load_text_corpus(*paths, rule="whitespace", min_count=1, max_size=4)
    assert len(limited.vocabulary) == 4
    with pytest.raises(ValueError, match="both `valid` and `test`"):
        load_text_corpus(paths[0], paths[1])
    with pytest.raises(FileNotFoundError):
        load_text_corpus(tmp_path / "none")


def test_byte_order_mark_and_long_single_line(tmp_path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"\xef\xbb\xbf" + b"ab " * 100)
    corpus = load_text_corpus(path, rule="characters")
    assert [getattr(corpus, s).size for s in SPLITS] == [270, 15, 15]
    assert corpus.vocabulary.decode(corpus.train[:3]) == "ab "


@given(
    data=st.one_of(st.binary(max_size=80), st.text(max_size=40).map(str.encode)),
    rule=st.sampled_from(RULES),
    kind=st.sampled_from(["", ".gz", ".zip"]),
    damage=st.none() | st.tuples(st.integers(0, 200), st.integers(0, 255)),
    raw=st.booleans(),
)
@settings(deadline=2000, max_examples=400)
def test_arbitrary_bytes(tmp_path_factory, data, rule, kind, damage, raw) -> None:
    """Any file gives a corpus or a ValueError with its name."""
    path = tmp_path_factory.mktemp("arbitrary") / f"t.txt{kind}"
    if raw:
        path.write_bytes(data)
    else:
        packed(data, kind, "t.txt", path)
    if damage is not None and not raw:
        content = bytearray(path.read_bytes())
        if content:
            content[damage[0] % len(content)] = damage[1]
        path.write_bytes(content)
    try:
        corpus = load_text_corpus(path, rule=rule)
    except ValueError as error:
        assert str(path) in str(error)
        return
    if kind == "" and rule == "bytes":
        whole = np.concatenate([corpus.train, corpus.valid, corpus.test])
        assert (
            bytes(map(ord, map(corpus.vocabulary.surface, whole))) == path.read_bytes()
        )


@given(data=st.binary(max_size=60), kind=st.sampled_from(["", ".gz", ".zip"]))
@settings(deadline=2000, max_examples=100)
def test_arbitrary_bytes_as_published_files(tmp_path_factory, data, kind: str) -> None:
    folder = tmp_path_factory.mktemp("arbitrary")
    for name in ("ptb", "ptb-char", "text8", "enwik8"):
        for file in PUBLISHED[name].files:
            (folder / (file + kind)).write_bytes(data)
        with pytest.raises(ValueError) as caught:
            load_corpus(name, folder)
        assert str(folder) in str(caught.value)


def test_options_reach_the_vocabulary(tmp_path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("a b a c\n" * 40)
    with pytest.raises(ValueError, match="min_count"):
        load_text_corpus(path, rule="bytes", min_count=3)
    with pytest.raises(ValueError, match="min_count"):
        load_text_corpus(path, min_count=0)


@pytest.mark.parametrize(
    ("text", "rule", "message"),
    [
        ("", "words", "the file is empty; expected text"),
        (
            "hello",
            "words",
            "1 line and 6 bytes is too short.* for the valid split",
        ),
        ("a", "characters", "1 line and 1 bytes is too .*for the train split.*`valid`"),
        (" \t ", "words", "1 line and 4 bytes is too short .* for the train split"),
        ("the cat sat here", "words", "no token but line ends occurs 2 .*`min_count`"),
        ("\n" * 50, "characters", "no token but line ends occurs at all in it. Give"),
    ],
)
def test_texts_that_are_too_short(tmp_path, text: str, rule: str, message: str) -> None:
    path = tmp_path / "t.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"t\.txt: .*{message}"):
        load_text_corpus(path, rule=rule)


@pytest.mark.parametrize("name", ["text.txt", "folder/text"])
def test_a_path_that_is_not_there(tmp_path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match="is not there; expected the path of"):
        load_corpus(str(tmp_path / name))
    (tmp_path / name).mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="is a folder"):
        load_corpus(str(tmp_path / name))


def test_a_part_of_a_text_without_a_token_for_each_row(tmp_path):
    path = tmp_path / "line.txt"
    path.write_text("the quick brown fox jumps over the lazy dog\n")
    corpus = load_text_corpus(path)
    message = r"of 8 tokens to train on, --fraction=0.5 leaves 4; .*batch_size=5 rows"
    with pytest.raises(ValueError, match=message):
        training_text(corpus, 0.5, 5)
    assert len(training_text(corpus, 0.5, 4)) == 4

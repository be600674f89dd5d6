"""What a corpus says of itself, and what it warns of."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.data import load_text_corpus

LINES = [f"the cat {word} on the mat ." for word in ("sat", "lay", "ran", "hid")] * 50


@pytest.fixture
def warned(caplog):
    """Returns the lines of the library's own log, which commands do not silence."""
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("rlm_tf.")
    ]


def load(tmp_path, text, **options):
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    return load_text_corpus(path, **options)


def test_bytes_and_words_are_those_of_the_splits(tmp_path):
    files = {"train": "a b\n\u00e9\u00e9  c\n", "valid": "a\tb c\n", "test": "a"}
    paths = []
    for name, text in files.items():
        paths.append(tmp_path / name)
        paths[-1].write_text(text, encoding="utf-8")
    corpus = load_text_corpus(*paths, min_count=1)
    # A line end that the last line lacks is put in.
    assert corpus.num_bytes == (4 + 8, 6, 2)
    assert corpus.num_words == (4, 3, 1)
    assert corpus.summary.tokens == (6, 4, 2)
    assert corpus.summary.tokens_per_word == pytest.approx(6 / 4)


@pytest.mark.parametrize("rule", ["words", "whitespace", "characters", "bytes"])
def test_unknown_tokens_are_counted(tmp_path, rule):
    corpus = load(tmp_path, "\n".join(LINES), rule=rule)
    for split, share in zip(
        ("train", "valid", "test"), corpus.summary.unknown, strict=True
    ):
        ids, unk = getattr(corpus, split), corpus.vocabulary.unk_id
        assert share == (0.0 if unk is None else np.mean(ids == unk))
    assert corpus.summary.vocabulary_size == len(corpus.vocabulary)
    first, second = corpus.summary.lines()
    assert f"({rule})" in first and f"{corpus.train.size:,} / " in second


def test_many_unknown_words_are_warned_of(tmp_path, warned):
    rare = "".join(f"word{i} and another{i}\n" for i in range(200))
    corpus = load(tmp_path, rare)
    share = max(corpus.summary.unknown)
    assert share > 0.3
    assert warned()[0].startswith(
        f"{tmp_path}/text.txt: {100 * share:.0f} % of the tokens"
    )
    assert "sentencepiece-unigram" in warned()[0]


def test_few_types_are_warned_of(tmp_path, warned):
    corpus = load(tmp_path, "yes no\n" * 3000)
    assert corpus.summary.types_per_million < 1000
    (line,) = warned()
    assert "different words in a million characters" in line


CHINESE = "".join(
    f"\u6211\u4eec\u5728{chr(0x4E00 + i)}\u91cc\u770b\u4e66\u3002\n" for i in range(300)
)


def test_scripts_without_blanks_are_warned_of(tmp_path, warned):
    corpus = load(tmp_path, CHINESE)
    assert corpus.summary.unspaced > 0.5
    assert any("script without blanks between words" in line for line in warned())


def test_subwords_of_such_scripts_are_not_warned_of(tmp_path, warned):
    corpus = load(tmp_path, CHINESE, rule="sentencepiece-unigram", max_size=532)
    assert corpus.summary.unknown == (0.0, 0.0, 0.0)
    assert not warned()
    assert corpus.num_bytes.valid == len(
        corpus.vocabulary.decode(corpus.valid).encode()
    )


def test_mistakes_of_subwords_are_named(tmp_path):
    with pytest.raises(ValueError, match="min_count and unknown do not apply"):
        load(tmp_path, CHINESE, rule="sentencepiece-bpe", min_count=2)
    with pytest.raises(ValueError, match="rule must be one of"):
        load(tmp_path, CHINESE, rule="subwords")

"""Rows of documents: what is in them, where they end, orders, mistakes; masked."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Masking, Segments, encoder_vocabulary, masked_count
from rlm_tf.data.text.bert_vocabulary import bert_vocabulary
from rlm_tf.training import ResumableBatches
from tests.data.text import test_word_pieces as word_pieces

_DOCUMENTS = [
    ["a first line of words", "and a second one", "third"],
    ["another document of one line which is rather long, as lines go"],
    ["short"],
] * 3
_TEXT = "\n\n \n".join("\n".join(lines) for lines in _DOCUMENTS)
_VOCABULARY = encoder_vocabulary(_TEXT * 3, 290)


def _texts(segments):
    """The text of every row, special tokens left out."""
    return [
        _VOCABULARY.decode([i for i in row if i >= 5])
        for row in segments.tokens.tolist()
    ]


def test_rows_are_the_documents_in_order():
    segments = Segments(_TEXT, _VOCABULARY, 12, 2)
    wanted = [" ".join(lines) for lines in _DOCUMENTS]
    assert "".join(_texts(segments)) == "".join(wanted)
    rows, row = [], ""
    for part in _texts(segments):
        row += part
        if row == wanted[len(rows)]:
            rows.append(row)
            row = ""
    # No row has two documents.
    assert rows == wanted
    for tokens in segments.tokens:
        length = np.count_nonzero(tokens)
        assert tokens[0] == 2 and tokens[length - 1] == 3
        assert not tokens[length:].any() and 3 not in tokens[: length - 1]
    assert not segments.segments.any()


def test_all_may_be_one_document():
    segments = Segments(_TEXT, _VOCABULARY, 12, 2, documents=False)
    whole = " ".join(" ".join(lines) for lines in _DOCUMENTS)
    assert "".join(_texts(segments)) == whole
    # The last row alone is padded.
    assert np.all(segments.tokens[:-1] != 0)


def test_two_texts_part_where_a_line_begins():
    segments = Segments(_TEXT, _VOCABULARY, 40, 2, two_texts=True, single_share=0.0)
    tokens, numbers = segments.tokens[0], segments.segments[0]
    ends = np.flatnonzero(tokens == 3)
    assert len(ends) == 2
    first = _VOCABULARY.decode(tokens[1 : ends[0]])
    second = _VOCABULARY.decode(tokens[ends[0] + 1 : ends[1]])
    whole = " ".join(_DOCUMENTS[0])
    assert first + second == whole[: len(first + second)]
    assert second.startswith((" and a second", " third"))
    assert numbers.tolist() == [0] * (ends[0] + 1) + [1] * (ends[1] - ends[0]) + [0] * (
        39 - ends[1]
    )
    single = Segments(_TEXT, _VOCABULARY, 40, 2, two_texts=True, single_share=1.0)
    assert not single.segments.any()
    (found,) = Segments(_TEXT, _VOCABULARY, 40, 2, two_texts=True).dataset().take(1)
    assert [part.shape for part in found] == [(2, 40), (2, 40)]


def test_some_rows_are_short():
    segments = Segments(_TEXT * 20, _VOCABULARY, 30, 2, short_share=0.5, seed=1)
    whole = Segments(_TEXT * 20, _VOCABULARY, 30, 2)
    assert "".join(_texts(segments)) == "".join(_texts(whole))
    lengths = (segments.tokens != 0).sum(1)
    assert len(lengths) > 1.1 * len(whole.tokens) and lengths.min() >= 3


def test_every_epoch_has_all_rows_in_another_order():
    segments = Segments(_TEXT, _VOCABULARY, 8, 3, seed=2)
    assert segments.steps == len(segments.tokens) // 3

    def rows(epoch, start=0):
        return np.concatenate([*segments.dataset(epoch, start).as_numpy_iterator()])

    assert rows(0).shape == (segments.steps * 3, 8)
    np.testing.assert_array_equal(rows(1), rows(1))
    assert np.any(rows(0) != rows(1))
    np.testing.assert_array_equal(rows(1, 2), rows(1)[6:])
    every = {row.tobytes() for row in segments.tokens}
    assert {row.tobytes() for row in rows(0)} <= every
    whole = np.concatenate([*segments.in_order().as_numpy_iterator()])
    np.testing.assert_array_equal(whole, segments.tokens)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("few", {"length": 30}, "at least the 28 pieces of one row"),
        (
            _TEXT,
            {"batch_size": 9999},
            "fewer than `batch_size`, 9999",
        ),
        (_TEXT, {"length": 4}, "`length` must be an integer >= 5, found 4"),
        (_TEXT, {"short_share": 2.0}, r"`short_share` must lie in \[0, 1\], found 2"),
        ("", {}, "found 0"),
    ],
)
def test_mistakes(text, options, message):
    with pytest.raises(ValueError, match=message):
        Segments(text, _VOCABULARY, **{"length": 12, "batch_size": 2, **options})


# === Masking ===


def test_batches_are_masked_anew_in_each_step():
    segments = Segments(_TEXT, _VOCABULARY, 12, 4)
    data = ResumableBatches(segments, transform=Masking(_VOCABULARY, seed=3))
    draws = []
    for epoch in (0, 1, 0):
        data.seek(epoch)
        draws.append([*data.dataset.as_numpy_iterator()])
    for (one,), (other,) in zip(draws[0], draws[2], strict=True):
        np.testing.assert_array_equal(one, other)
    (tokens, shown, positions), *_ = (x for (x,) in draws[0])
    assert tokens.dtype == shown.dtype == positions.dtype == np.int32
    counts = masked_count((tokens != 0).sum(1), length=12)
    assert positions.sum(1).tolist() == counts.tolist()
    assert np.all(shown[positions == 1] == 4) and np.all(tokens[positions == 1] >= 5)
    second = [x for (x,) in draws[1]]
    assert any(np.any(x[2] != y[2]) for (x,), y in zip(draws[0], second, strict=True))
    # To evaluate on: the same in every pass.
    fixed = Masking(_VOCABULARY).of_all(segments.in_order())
    passes = [[x for (x,) in fixed.as_numpy_iterator()] for _ in range(2)]
    for one, other in zip(*passes, strict=True):
        np.testing.assert_array_equal(one, other)


def test_whole_words_are_masked_together():
    segments = Segments(_TEXT, _VOCABULARY, 30, 4)
    masking = Masking(_VOCABULARY, ratio=0.4, whole_words=True)
    begins = np.array([t.startswith("\u2581") for t in _VOCABULARY.tokens])
    several = 0
    for ((tokens, _, positions),) in masking.of_all(segments.in_order()):
        for row, masked in zip(tokens.numpy(), positions.numpy(), strict=True):
            word = np.cumsum(begins[row] | (np.arange(30) == 1))
            kept = row >= 5
            shares = [masked[kept & (word == w)].mean() for w in np.unique(word[kept])]
            cut = [share for share in shares if 0 < share < 1]
            assert not cut or (len(cut) == 1 and 1 not in shares)
            several += sum(
                masked[kept & (word == w)].sum() > 1 for w in np.unique(word)
            )
    assert several > 5


def test_segments_go_along():
    segments = Segments(_TEXT, _VOCABULARY, 20, 3, two_texts=True)
    data = ResumableBatches(segments, transform=Masking(_VOCABULARY))
    ((x,),) = data.dataset.take(1)
    assert len(x) == 4 and all(part.shape == (3, 20) for part in x)
    assert x[3].dtype == tf.int32


def test_whole_words_of_word_pieces(tmp_path):
    word_pieces.write(tmp_path)
    vocabulary = bert_vocabulary(tmp_path).vocabulary
    ids = [vocabulary.encode("the ships sailed")] * 300
    longest = len(ids[0])
    goes_on = [vocabulary.tokens[i].startswith("##") for i in ids[0]]
    assert any(goes_on)
    rows = np.array([[2, *own, 3] for own in ids], np.int32)
    masking = Masking(vocabulary, ratio=0.4, whole_words=True, seed=1)
    ((_, _, positions),) = masking(tf.constant(rows), 0, 0)
    inner = positions.numpy()[:, 1:-1]
    # Every word is masked now and then, with all of its pieces.
    assert (inner.sum(axis=0) > 0).all() and longest > 2
    for place in np.flatnonzero(goes_on):
        np.testing.assert_array_equal(inner[:, place], inner[:, place - 1])


def test_no_padding_is_drawn_in_place_of_words():
    tokens = np.tile(np.array([2, *range(5, 13), 3], np.int32), [2000, 1])
    masking = Masking(_VOCABULARY, ratio=0.5, scheme="bert", seed=2)
    masking.vocabulary_size = 6
    ((_, shown, positions),) = masking(tf.constant(tokens), 0, 0)
    drawn = shown.numpy()[positions.numpy() > 0]
    assert not np.any(drawn == 0) and np.any(drawn == 1)

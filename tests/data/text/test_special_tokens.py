"""Special tokens of encoders: their ids, and that no text has them."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.data import Vocabulary, encoder_vocabulary, special_ids

_TEXT = "the [MASK] of a <pad> word [CLS] is here\n<eos> and there\n" * 20


@pytest.mark.parametrize("rule", ["sentencepiece-unigram", "sentencepiece-bpe"])
def test_special_tokens_have_the_first_ids_and_are_in_no_text(rule):
    vocabulary = encoder_vocabulary(_TEXT, 300, rule=rule)
    assert special_ids(vocabulary) == (0, 1, 2, 3, 4)
    assert vocabulary.tokens[:5] == ("<pad>", "<unk>", "[CLS]", "<eos>", "[MASK]")
    ids = vocabulary.encode(_TEXT)
    # The end of a line alone.
    assert set(ids[ids < 5].tolist()) == {vocabulary.eos_id} == {3}
    assert np.count_nonzero(ids == 3) == 40
    assert vocabulary.decode(ids) == _TEXT
    assert {0, 1, 2, 4} < set(vocabulary.never_in_text)
    assert 3 not in vocabulary.never_in_text
    graph = vocabulary.encode_tensor([_TEXT]).flat_values
    np.testing.assert_array_equal(graph, ids)


def test_a_file_keeps_them(tmp_path):
    vocabulary = encoder_vocabulary(_TEXT, 290)
    vocabulary.save(tmp_path / "v.txt")
    loaded = Vocabulary.load(tmp_path / "v.txt")
    assert loaded == vocabulary and special_ids(loaded).mask == 4


def test_another_vocabulary_is_refused():
    with pytest.raises(ValueError, match=r"begins with <pad>.*found .* make it by"):
        special_ids(Vocabulary.build("a b c", "words"))

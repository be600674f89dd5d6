"""`rlm_tf finetune` of a published BERT."""

from __future__ import annotations

import dataclasses

import pytest
import tensorflow as tf

from rlm_tf.commands.encoders import finetuning, settings, using
from rlm_tf.data import Vocabulary
from tests.layers.transformer.published import write_bert

_PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *["the", "a", "old", "ship", "tree"],
]


@pytest.mark.landing
def test_a_published_bert_is_fine_tuned_and_served(tmp_path, capsys):
    bert = tmp_path / "bert"
    bert.mkdir()
    write_bert(bert, _PIECES, max_sequence_length=12)
    lines = ["The old ship,sea", "a tree,wood"] * 30
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *lines]))
    given = settings.FinetuneSettings(
        encoder=str(bert),
        train=str(tmp_path / "train.csv"),
        output_dir=str(tmp_path / "out"),
        epochs=1,
    )
    settings.check_finetune_settings(given)
    finetuning.run(given)
    printed = capsys.readouterr().out
    # The longest rows that the checkpoint has positions for; a rate for large models.
    assert "rows of 12 tokens" in printed and "rate 5e-05" in printed
    served = using._signatures(str(tmp_path / "out"))["classify"]
    answer = served(texts=tf.constant(["the old ship", "A tree", ""]))
    assert set(answer["labels"].numpy()) <= {b"sea", b"wood"}
    vocabulary = Vocabulary.load(tmp_path / "out" / "vocabulary.txt")
    assert vocabulary.rule == "wordpiece-lower"
    (bert / "vocab.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no vocab\.txt"):
        finetuning.run(dataclasses.replace(given, overwrite=True))

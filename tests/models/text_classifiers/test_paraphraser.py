"""Paraphrases of a tiny T5: draws, rows without words, folders, mistakes."""

from __future__ import annotations

import io

import keras
import pytest
import sentencepiece

from rlm_tf.models import T5Paraphraser

_TEXTS = ["the quick fox", " ", "a dog", "the dog"]


@pytest.fixture(scope="module")
def model():
    from keras_hub.models import (
        T5Backbone,
        T5Seq2SeqLM,
        T5Seq2SeqLMPreprocessor,
        T5Tokenizer,
    )

    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the quick brown fox jumps over a lazy dog"] * 20),
        model_writer=content,
        vocab_size=36,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    tokenizer = T5Tokenizer(proto=content.getvalue())
    preprocessor = T5Seq2SeqLMPreprocessor(
        tokenizer, encoder_sequence_length=24, decoder_sequence_length=12
    )
    keras.utils.set_random_seed(1)
    backbone = T5Backbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=8,
        dropout=0.0,
    )
    return T5Seq2SeqLM(backbone, preprocessor=preprocessor)


@pytest.mark.landing
@pytest.mark.filterwarnings("ignore:Layer '.*attention' .* was passed an input with")
def test_paraphrases_are_drawn_and_come_again(model, tmp_path):
    said = T5Paraphraser(model, length=12, batch_size=2, seed=3)
    found = said(_TEXTS)
    assert len(found) == 4 and found[1] == " " and found[0] != _TEXTS[0]
    assert said(_TEXTS) == found and _TEXTS[1] == " "
    other = T5Paraphraser(model, length=12, batch_size=2, seed=4)
    assert other(_TEXTS) != found
    # One token that is likeliest: each text depends on itself alone.
    likeliest = T5Paraphraser(model, length=12, batch_size=2, top_k=1)
    both = likeliest(_TEXTS)
    assert likeliest(_TEXTS[::-1]) == both[::-1]
    model.save_to_preset(str(tmp_path / "t5"))
    loaded = T5Paraphraser(tmp_path / "t5", length=12, batch_size=2, seed=3)
    assert loaded(_TEXTS) == found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "`temperature` must"),
        ({"top_p": 1.5}, "`top_p` must"),
        ({"top_k": 0}, "`top_k` must"),
        ({"length": 0}, "`length` must"),
        ({"seed": -1}, "`seed` must"),
        ({}, "expected a keras_hub.models.T5Seq2SeqLM with a preprocessor, found dict"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(ValueError, match=message):
        T5Paraphraser({}, **options)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        T5Paraphraser(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="is no T5 that KerasHub reads"):
        T5Paraphraser(tmp_path)

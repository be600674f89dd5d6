"""A published BERT: numbers of tokens change, what it says does not."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import read_bert
from rlm_tf.serving import export_encoder
from tests.data.text.test_word_pieces import WORDS
from tests.layers.transformer.published import backbone_of, write_bert


def _gelu(x):
    from scipy.special import erf

    return x * (1 + erf(x / np.sqrt(2))) / 2


def test_it_says_what_the_checkpoint_says(tmp_path):
    backbone, head = write_bert(tmp_path, WORDS)
    found = read_bert(tmp_path, dropout=0.0)
    assert found.has_head and found.model.encoder.dropout == 0.0
    ids = found.vocabulary.encode("the ships")
    rows = {name: i for i, name in enumerate(WORDS)}
    published = [rows["the"], rows["ship"], rows["##s"]]
    ours, theirs = np.array([[2, *ids, 3]]), np.array([[3, *published, 4]])
    exact = TransformerEncoder.from_keras_hub(backbone, activation="gelu")
    features = exact(theirs).numpy()
    np.testing.assert_allclose(found.model.encoder(ours), features, atol=1e-5)

    hidden = _gelu(
        features @ head["transform.dense.weight"].T + head["transform.dense.bias"]
    )
    hidden -= hidden.mean(axis=-1, keepdims=True)
    hidden /= np.sqrt(hidden.var(axis=-1, keepdims=True) + 1e-12)
    hidden = hidden * head["transform.LayerNorm.gamma"]
    hidden += head["transform.LayerNorm.beta"]
    embeddings = np.asarray(backbone.token_embedding.embeddings)
    expected = hidden @ embeddings.T + head["bias"]
    logits = found.model(ours).numpy()
    for token, name in enumerate(found.vocabulary.tokens[4:], 4):
        place = rows.get(name, token)
        np.testing.assert_allclose(
            logits[..., token], expected[..., place], atol=1e-3, rtol=1e-4
        )
    # [PAD], [UNK], [CLS] and [SEP] are in front.
    places = [rows[name] for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")]
    np.testing.assert_allclose(
        logits[..., :4], expected[..., places], atol=1e-3, rtol=1e-4
    )


def test_mistakes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no vocab\.txt"):
        read_bert(tmp_path)
    write_bert(tmp_path, WORDS, head=False)
    assert not read_bert(tmp_path).has_head
    (tmp_path / "vocab.txt").write_text("\n".join([*WORDS, "one", "more"]))
    with pytest.raises(ValueError, match=f"{len(WORDS) + 2} pieces and embeddings"):
        read_bert(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"hidden_act": "relu", "vocab_size": len(WORDS) + 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="hidden_act 'relu'; expected one of gelu"):
        read_bert(tmp_path)
    (tmp_path / "config.json").write_text(
        json.dumps({**config, "hidden_act": "gelu", "model_type": "roberta"})
    )
    for read in (read_bert, TransformerEncoder.from_checkpoint):
        with pytest.raises(ValueError, match=r"must be a BERT checkpoint, .*roberta"):
            read(tmp_path)
    for text, message in (
        ("{bad", r"config\.json is damaged: Expecting"),
        ("[1, 2]", r"config\.json must be an object, found list"),
    ):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_bert(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        read_bert(tmp_path)


@pytest.mark.slow
@pytest.mark.landing
def test_it_is_exported_and_fills_masks(tmp_path):
    (tmp_path / "bert").mkdir()
    write_bert(tmp_path / "bert", WORDS)
    bert = read_bert(tmp_path / "bert")
    export_encoder(bert.model, bert.vocabulary, tmp_path / "served", length=7)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    answer = served["fill_mask"](
        texts=tf.constant(["The [MASK] sailed."]), k=tf.constant(3)
    )
    tokens = answer["tokens"].numpy()[0, 0]
    ids = bert.vocabulary.encode("the [MASK] sailed.")
    shown = np.array([[2, ids[0], 4, *bert.vocabulary.encode("sailed."), 3]])
    logits = bert.model(shown).numpy()[0, 2]
    logits[list(bert.vocabulary.never_in_text)] = -np.inf
    logits[bert.vocabulary.eos_id] = -np.inf
    best = [bert.vocabulary.decode([i]) for i in np.argsort(-logits)[:3]]
    assert [token.decode() for token in tokens] == best


def test_a_preset_of_keras_hub(tmp_path):
    from keras_hub.tokenizers import BertTokenizer

    backbone = backbone_of(vocabulary_size=len(WORDS))
    backbone.save_to_preset(str(tmp_path))
    pieces = tmp_path / "pieces.txt"
    pieces.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    BertTokenizer(str(pieces), lowercase=True).save_to_preset(str(tmp_path))
    pieces.unlink()
    found = read_bert(tmp_path, dropout=0.0)
    assert not found.has_head and found.vocabulary.rule == "wordpiece-lower"
    ids = found.vocabulary.encode("the ships")
    rows = {name: i for i, name in enumerate(WORDS)}
    published = np.array([[rows["the"], rows["ship"], rows["##s"]]])
    given = {
        "token_ids": published,
        "segment_ids": np.zeros_like(published),
        "padding_mask": np.ones_like(published),
    }
    expected = backbone(given)["sequence_output"]
    ours = found.model.encoder(np.array([ids]))
    np.testing.assert_allclose(ours, expected, atol=1e-4)

"""BERT's pieces of words: what KerasHub cuts, graphs and Python agree."""

from __future__ import annotations

import json
import pickle
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm_tf.data import Vocabulary, bert_vocabulary, load_text_corpus
from rlm_tf.data.text.special_tokens import ENCODER_RESERVED, FIRST_IDS, special_ids

_SPECIAL = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WORDS = ["the", "ship", "sail", "##s", "##ing", "##ed", "un", ".", ",", "(", ")", "'"]
_LETTERS = [*"abcdefghijklmnopqrstuvwxyz中"]
WORDS = [*_SPECIAL, *_WORDS, *_LETTERS, *(f"##{c}" for c in _LETTERS[:-1])]
WORDS = [*dict.fromkeys(WORDS)]


def write(folder, words=WORDS, lower=None):
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    if lower is not None:
        config = json.dumps({"do_lower_case": lower})
        (folder / "tokenizer_config.json").write_text(config)
    return bert_vocabulary(folder)


@pytest.fixture(scope="module", params=[True, False], ids=["lower", "cased"])
def found(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp("bert"), lower=request.param)


def test_special_tokens_come_first_and_rows_say_where_they_were(found):
    vocabulary, rows = found
    assert vocabulary.tokens[:5] == ENCODER_RESERVED
    assert special_ids(vocabulary) == FIRST_IDS
    assert sorted(rows) == list(range(len(WORDS)))
    assert [WORDS[row] for row in rows[5:]] == list(vocabulary.tokens[5:])
    assert [WORDS[row] for row in rows[:5]] == [_SPECIAL[i] for i in (0, 2, 3, 4, 5)]
    never = {vocabulary.tokens[i] for i in vocabulary.never_in_text}
    assert not set(vocabulary.encode("[MASK] [CLS] <unk> [unused0]")) & {0, 2, 3, 4, 5}
    assert never == {"<pad>", "<unk>", "[CLS]", "[MASK]", "[unused0]"}


@pytest.fixture(scope="module")
def theirs(found):
    from keras_hub.tokenizers import BertTokenizer

    # By itself it keeps accents, which BERT does not where it has lower case.
    lower = found.vocabulary.rule == "wordpiece-lower"
    return BertTokenizer(WORDS, lowercase=lower, strip_accents=lower)


# Letters, and what parts words; KerasHub knows no blanks but ASCII's, and takes names
# of special tokens in texts for what they name.
_PLAIN = st.one_of(
    st.characters(max_codepoint=0x24F, categories=["Lu", "Ll"]).filter(
        lambda c: unicodedata.is_normalized("NFKC", c)
    ),
    st.sampled_from([*"  .,;:!?'()-+#]0123456789"]),
)


@settings(max_examples=30, deadline=None)
@given(text=st.text(_PLAIN, max_size=50))
@example(text="The ships SAILED, unsailing (the) 中中 ship's")
@example(text="<unk> unused0] ##s")
@example(text="naïve Éclair ﬁ ß İ")
@example(text="")
def test_it_cuts_as_keras_hub_does(found, theirs, text):
    vocabulary, rows = found
    expected = np.asarray(theirs(text))
    np.testing.assert_array_equal(rows[vocabulary.encode(text)], expected)


@settings(max_examples=30, deadline=None)
@given(text=st.one_of(st.text(max_size=50), st.binary(max_size=40)))
@example(text="a\n\nb \n")
@example(text="naïve 中文 日本\u0301 \u2028 \x00 🙂 \ud800")
@example(text=b"\xff\xfe a \xe4\xb8")
def test_graphs_and_python_agree(found, text):
    vocabulary, _ = found
    ids = vocabulary.encode(text)
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    in_graph = vocabulary.encode_tensor(tf.constant([data, b"b\n", b""]))
    np.testing.assert_array_equal(in_graph[0], ids)
    assert in_graph[1].numpy().tolist() == [vocabulary.id_of("b"), vocabulary.eos_id]
    assert in_graph[2].shape == (0,)
    assert np.count_nonzero(ids == vocabulary.eos_id) == data.count(b"\n")
    read = vocabulary.decode(ids)
    assert vocabulary.decode_tensor(in_graph).numpy()[0].decode() == read
    if vocabulary.unk_id not in ids:
        np.testing.assert_array_equal(vocabulary.encode(read), ids)


def test_what_is_read(found):
    vocabulary, _ = found
    ids = vocabulary.encode("unsailing ships (the\nsailed, b) 9")
    tokens = [vocabulary.tokens[i] for i in ids]
    expected = "un ##s ##a ##i ##l ##ing ship ##s ( the <eos> sail ##ed , b ) <unk>"
    assert tokens == expected.split()
    assert vocabulary.decode(ids) == "unsailing ships (the\nsailed, b) <unk>"
    assert vocabulary.normalises
    upper = vocabulary.encode("É")
    lower = vocabulary.rule == "wordpiece-lower"
    assert [vocabulary.tokens[i] for i in upper] == (["e"] if lower else ["<unk>"])


def test_files_and_copies(found, tmp_path):
    vocabulary, _ = found
    vocabulary.save(tmp_path / "vocabulary.txt")
    loaded = Vocabulary.load(tmp_path / "vocabulary.txt")
    assert loaded == vocabulary and loaded.rule == vocabulary.rule
    copy = pickle.loads(pickle.dumps(vocabulary))
    np.testing.assert_array_equal(copy.encode("ships"), vocabulary.encode("ships"))

    module = tf.Module()
    module.tables = vocabulary.graph_tables()
    module.encode = tf.function(
        lambda texts: module.tables.encode(texts).to_tensor(-1),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path / "saved"))
    served = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_array_equal(
        served.encode(tf.constant(["ships\n"]))[0], vocabulary.encode("ships\n")
    )


def test_case_is_known_by_the_pieces(tmp_path):
    assert write(tmp_path).vocabulary.rule == "wordpiece-lower"
    assert write(tmp_path, [*WORDS, "Ship"]).vocabulary.rule == "wordpiece"
    assert write(tmp_path, [*WORDS, "Ship"], True).vocabulary.rule == "wordpiece-lower"


def test_a_relative_folder_and_damaged_settings(tmp_path, monkeypatch):
    folder = tmp_path / "bert"
    folder.mkdir()
    write(folder)
    monkeypatch.chdir(tmp_path)
    assert bert_vocabulary("bert").vocabulary.rule == "wordpiece-lower"
    for said, message in (
        ("{", r"tokenizer_config\.json is no JSON"),
        ("[]", r"tokenizer_config\.json must hold a dictionary, found list"),
    ):
        (folder / "tokenizer_config.json").write_text(said)
        with pytest.raises(ValueError, match=message):
            bert_vocabulary("bert")


def test_mistakes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no vocab\.txt"):
        bert_vocabulary(tmp_path)
    with pytest.raises(ValueError, match=r"vocab\.txt has no \[CLS\], \[MASK\]"):
        write(tmp_path, [w for w in WORDS if w not in ("[CLS]", "[MASK]")])
    with pytest.raises(ValueError, match=r"vocab\.txt: .*'ship' appears twice"):
        write(tmp_path, [*WORDS, "ship"])
    with pytest.raises(ValueError, match="`bert_vocabulary` reads them"):
        Vocabulary.build("a text", "wordpiece")
    with pytest.raises(ValueError, match="needs <unk>"):
        Vocabulary(["a", "<eos>"], "wordpiece")
    (tmp_path / "text.txt").write_text("a text\n" * 20)
    with pytest.raises(ValueError, match="published encoder"):
        load_text_corpus(tmp_path / "text.txt", rule="wordpiece-lower")

"""What the report tells: costly words, forecast, calibration, the page itself."""

from __future__ import annotations

import html.parser
import json

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.commands.report import contents, writing
from rlm_tf.commands.report.page import Page, markdown_table
from rlm_tf.commands.training import measuring, results
from rlm_tf.data import Corpus, Vocabulary
from rlm_tf.data.text.corpora import encoded_corpus
from rlm_tf.data.text.python_docs import python_docs
from rlm_tf.evaluation import reliability
from rlm_tf.models import RecurrentLanguageModel


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    texts = {name: text.encode()[:40_000] for name, text in python_docs().items()}
    vocabulary = Vocabulary.build(texts["train"], "words", min_count=2, unknown=True)
    return encoded_corpus("docs", texts, vocabulary, dict.fromkeys(texts, "docs"))


def test_words_that_cost_most_are_sums_over_their_pieces():
    text = "a tree, a treehouse\na house\n" * 40
    vocabulary = Vocabulary.build(text, "sentencepiece-unigram", max_size=280)
    tokens = vocabulary.encode(text)
    log_probs = -np.random.default_rng(0).exponential(size=len(tokens))
    found = contents.costly_words(vocabulary, tokens, log_probs, most=100)
    times = {row.word: row.times for row in found}
    assert times == {
        "a": 120,
        "tree": 40,
        ",": 40,
        "treehouse": 40,
        "house": 40,
        "<eos>": 80,
    }
    assert sum(row.share for row in found) == pytest.approx(1.0)
    total = sum(row.times * row.nats for row in found)
    assert total == pytest.approx(-log_probs.sum())
    assert [r.share for r in found] == sorted((r.share for r in found), reverse=True)


def test_pieces_of_scripts_without_blanks_are_words():
    text = "\u6211\u4eec\u770b\u4e66\u3002\nthe tree\n" * 20
    vocabulary = Vocabulary.build(text, "sentencepiece-unigram", max_size=300)
    seen = text + "the \u9f98\u9f98\n"  # in bytes
    tokens = vocabulary.encode(seen)
    found = contents.costly_words(vocabulary, tokens, np.full(len(tokens), -1.0), 100)
    times = {row.word: row.times for row in found}
    assert times["\u9f98"] == 2 and times["the"] == 21
    assert max(len(word) for word in times if word.isalpha()) <= 5
    joined = "".join(word * times[word] for word in times if word > "\u3000")
    assert sorted(joined) == sorted(sign for sign in seen if sign > "\u3000")


def test_words_of_a_vocabulary_of_words_are_its_tokens(corpus):
    log_probs = np.full(len(corpus.test), -2.0)
    found = contents.costly_words(corpus.vocabulary, corpus.test, log_probs, most=3)
    counts = np.bincount(corpus.test)
    assert found[0].times == counts.max() and found[0].nats == 2.0
    assert corpus.vocabulary.tokens[int(counts.argmax())] == found[0].word


def test_the_forecast_goes_on_from_what_is_measured(corpus):
    found = contents.forecast(corpus, corpus.train, 3)
    assert found is not None
    assert (
        found.tokens[3] == len(corpus.train) and found.tokens[4] == 2 * found.tokens[3]
    )
    assert found.measured == [True] * 4 + [False] * 3
    assert found.bits_per_byte == sorted(found.bits_per_byte, reverse=True)
    assert found.bits_per_byte[-1] > 0
    # An eighth of it would be too short to be counted.
    assert contents.forecast(corpus, corpus.train[:20], 5) is None
    given = contents.forecast(
        corpus, corpus.train, 3, np.full(len(corpus.test), -0.5 * np.log(2))
    )
    assert given is not None and corpus.num_bytes is not None
    assert given.bits_per_byte[:3] == found.bits_per_byte[:3]
    tokens_per_byte = len(corpus.test) / corpus.num_bytes.test
    assert given.bits_per_byte[3] == pytest.approx(0.5 * tokens_per_byte)


def test_perplexities_of_words_beyond_all_floats_are_left_out():
    held = {"test": measuring.Text(np.zeros(800, np.int32), 2400, 2)}
    found = results.scores_of({"model": {"test": np.full(800, -2.0)}}, held)
    row = found["model"]["test"]
    assert row["perplexity_per_word"] is None
    assert row["perplexity"] == pytest.approx(np.exp(2.0))
    assert writing.per_word(row["perplexity_per_word"]) == ""
    json.dumps(found, allow_nan=False)


def test_calibration_is_that_of_whole_rows(corpus):
    model = RecurrentLanguageModel(len(corpus.vocabulary), 8, 1, seed=1)
    tokens = corpus.test[:600]
    found = contents.calibration(model, tokens, corpus.vocabulary.eos_id)
    read = np.concatenate([[corpus.vocabulary.eos_id], tokens[:-1]])[np.newaxis]
    probs = tf.nn.softmax(model(read, training=False)[0]).numpy()
    expected = reliability(probs.max(-1), probs.argmax(-1) == tokens)
    np.testing.assert_allclose(found.confidence, expected.confidence, rtol=1e-5)
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.expected_error == pytest.approx(expected.expected_error, rel=1e-4)


class Tags(html.parser.HTMLParser):
    """Collects tags and text, and checks that they nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_page_is_written_as_markdown_and_html(tmp_path):
    page = Page("A <title>")
    page.paragraph("1 < 2 & 3")
    page.paragraph("mind", warning=True)
    page.heading("Table")
    page.table([("a", "b"), ("x|y", "<eos>")])
    page.items(["one", "two"])
    page.text("line\n~~~~\nend")
    page.figure("curve", b"png", "A curve")
    page.write(tmp_path)
    markdown = (tmp_path / "report.md").read_text()
    assert "# A <title>" in markdown and "**Warning:** mind" in markdown
    assert (
        "| x\\|y | <eos> |" in markdown and "~~~~~\nline\n~~~~\nend\n~~~~~" in markdown
    )
    assert "![A curve](report_files/curve.png)" in markdown
    assert (tmp_path / "report_files" / "curve.png").read_bytes() == b"png"
    tags = Tags()
    tags.feed((tmp_path / "report.html").read_text())
    assert not tags.open and "1 < 2 & 3" in tags.text and "<eos>" in tags.text
    assert {"table", "ul", "pre", "img"} <= set(tags.seen)
    # Nothing is fetched from anywhere.
    assert "http" not in (tmp_path / "report.html").read_text()


def test_columns_of_words_begin_on_the_left():
    assert markdown_table([("a", "b", "c"), ("x", "word", "1")], left=2) == [
        "| a  | b    |  c |",
        "| -- | ---- | -: |",
        "| x  | word |  1 |",
    ]


def test_tables_are_padded():
    assert markdown_table([("a", "long"), ("word", "1")]) == [
        "| a    | long |",
        "| ---- | ---: |",
        "| word |    1 |",
    ]

"""Tests of ARPA files."""

from __future__ import annotations

import gzip
import re
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm_tf.restricted import KneserNey, read_arpa, write_arpa

WORDS = ["<eos>", "<unk>", "a", "b", "Straße", "\u00a0c", "never"]
TOKENS = np.random.default_rng(3).zipf(1.4, 500) % 6

# As KenLM or SRILM would write it: sentence marks, and words that we do not have.
FOREIGN = """made by hand

\\data\\
ngram 1=6
ngram 2=5
ngram 3=2

\\1-grams:
-99\t<s>\t-0.30103
-0.60206\t</s>
-1\t<unk>
-0.60206\ta\t-0.1
-0.60206\tb\t-0.2
-0.6575773\tother\t-0.3

\\2-grams:
-0.30103\t<s> a\t-0.5
-0.69897\t<s> </s>
-0.39794\ta b\t-0.25
-0.5\tb </s>
-0.1\ta other

\\3-grams:
-0.2\t<s> a b
-0.9\ta b </s>

\\end\\
"""


def _all_pairs(size):
    return np.stack(np.divmod(np.arange(size * size), size), axis=1)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("smoothing", ["modified", "maximum_likelihood", "add_k"])
def test_round_trip(order, smoothing, tmp_path):
    model = KneserNey(order, smoothing).fit(TOKENS, len(WORDS))
    contexts = np.random.default_rng(0).integers(0, len(WORDS), [200, order - 1])
    for name in ("model.arpa", "model.arpa.gz"):
        write_arpa(model, WORDS, tmp_path / name)
        read = read_arpa(tmp_path / name, WORDS)
        assert read.context_length == order - 1
        np.testing.assert_allclose(
            read.probs_numpy(contexts), model.probs_numpy(contexts), atol=1e-8
        )
        np.testing.assert_allclose(
            read.probs(contexts), model.probs(contexts), atol=1e-6
        )
        np.testing.assert_allclose(read.score(TOKENS), model.score(TOKENS), atol=1e-7)
    assert (tmp_path / "model.arpa.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_written(tmp_path):
    model = KneserNey(2, "maximum_likelihood").fit([0, 1, 0, 0, 1], 2)
    write_arpa(model, ["x", "y"], tmp_path / "model.arpa")
    assert (tmp_path / "model.arpa").read_text() == (
        "\\data\\\nngram 1=5\nngram 2=3\n\n"
        "\\1-grams:\n-99\t<unk>\n-99\t<s>\n-99\t</s>\n"
        "-0.22184875\tx\t-99\n-0.397940009\ty\t-99\n\n\\2-grams:\n"
        "-0.477121255\tx x\n-0.176091259\tx y\n0\ty x\n\n\\end\\\n"
    )


class TestForeignFile:
    """Values from the back-off rule, worked out with the file in hand."""

    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "foreign.arpa"
        path.write_text(FOREIGN)
        return path

    def test_sentence_boundary(self, path):
        words = ["<eos>", "a", "b", "<unk>"]
        model = read_arpa(path, words, sentence_boundary="<eos>", normalize=False)
        rows = np.log10(model.probs_numpy(_all_pairs(4))).reshape(4, 4, 4)
        eos, a, b, unk = range(4)
        assert rows[eos, a, b] == pytest.approx(-0.2)  # <s> a b
        assert rows[a, b, eos] == pytest.approx(-0.9)  # a b </s>
        assert rows[eos, a, eos] == pytest.approx(-0.5 - 0.1 - 0.60206)
        assert rows[b, eos, a] == pytest.approx(-0.30103)  # no "b <s>": <s> a
        assert rows[b, eos, eos] == pytest.approx(-0.69897)  # <s> </s>
        assert rows[b, eos, b] == pytest.approx(-0.30103 - 0.60206)
        assert rows[unk, unk, unk] == pytest.approx(-1)
        assert rows[a, b, a] == pytest.approx(-0.25 - 0.2 - 0.60206)

    def test_rows_are_normalised_over_the_vocabulary(self, path):
        words = ["<eos>", "a", "b"]
        raw = read_arpa(path, words, sentence_boundary="<eos>", normalize=False)
        model = read_arpa(path, words, sentence_boundary="<eos>")
        rows = raw.probs_numpy(_all_pairs(3))
        assert (rows.sum(axis=1) < 0.99).any()
        expected = rows / rows.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(
            model.probs_numpy(_all_pairs(3)), expected, rtol=1e-9
        )
        np.testing.assert_allclose(model.probs(_all_pairs(3)), expected, rtol=1e-5)

    def test_words_that_the_file_lacks(self, path):
        model = read_arpa(path, ["a", "b", "new", "newer"], normalize=False)
        base = model.probs_numpy([[2, 2]])[0]
        np.testing.assert_allclose(base, [10**-0.60206] * 2 + [0.05] * 2, rtol=1e-6)
        model = read_arpa(path, ["a", "<unk>", "new"], normalize=False)
        np.testing.assert_allclose(model.probs_numpy([[1, 1]])[0, 1:], [0.1, 0])
        # No n-gram of two words is left of it.
        model = read_arpa(path, ["a", "<unk>", "new"])
        assert model.probs_numpy([[1, 1]])[0].sum() == pytest.approx(1)

    def test_contexts_whose_suffixes_were_pruned(self, tmp_path):
        path = tmp_path / "pruned.arpa"
        path.write_text(
            "\\data\\\nngram 1=3\nngram 2=2\nngram 3=2\n\n\\1-grams:\n-0.4\ta\t-0.1\n"
            "-0.5\tb\n-0.6\tc\n\n\\2-grams:\n-0.3\ta b\t-0.2\n-0.7\ta c\t-0.9\n\n"
            "\\3-grams:\n-0.25\ta b c\n-0.45\ta c c\n\n\\end\\\n"
        )
        model = read_arpa(path, ["a", "b", "c"], normalize=False)
        rows = np.log10(model.probs_numpy([[0, 1], [0, 2], [1, 1]]))
        np.testing.assert_allclose(rows[:, 2], [-0.25, -0.45, -0.6])
        np.testing.assert_allclose(rows[:, 1], [-0.7, -1.4, -0.5])

    def test_contradictions(self, path):
        with pytest.raises(ValueError, match="'<eos>' is not in the vocabulary"):
            read_arpa(path, ["a"], sentence_boundary="<eos>")
        with pytest.raises(
            ValueError, match=r"foreign\.arpa: `sentence_boundary` need"
        ):
            read_arpa(path, ["a", "b"], sentence_boundary="a")
        with pytest.raises(
            ValueError, match=r"foreign\.arpa: no word of the vocabulary"
        ):
            read_arpa(path, ["x", "<s>"])


@pytest.mark.peers
@pytest.mark.parametrize("order", [2, 3, 4])
def test_kenlm_scores_our_file(order, tmp_path):
    kenlm = pytest.importorskip(
        "kenlm", reason="the optional extra `peers` (kenlm) is not installed"
    )
    model = KneserNey(order).fit(TOKENS, len(WORDS))
    write_arpa(model, WORDS, tmp_path / "model.arpa")
    peer = kenlm.Model(str(tmp_path / "model.arpa"))
    state, after = kenlm.State(), kenlm.State()
    peer.NullContextWrite(state)
    scores = []
    for token in TOKENS:
        scores.append(peer.BaseScore(state, WORDS[token], after))
        state, after = after, state
    expected = np.array(scores[order - 1 :]) * np.log(10)
    np.testing.assert_allclose(model.score(TOKENS), expected, atol=1e-4)


class TestMalformedFiles:
    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("\\data\\", "\\dat\\", r"line 28: expected '\\data\\', found the end"),
            ("ngram 2=5", "ngram 3=5", "line 5: expected 'ngram 2=<count>'"),
            ("ngram 1=6", "", "line 5: expected 'ngram 1=<count>'"),
            (
                "ngram 2=5",
                "ngram 2=4",
                r"line 21: expected '\\3-grams:', found '-0.1",
            ),
            ("ngram 2=5", "ngram 2=6", r"line 22: expected a log10 .* found ''"),
            ("\\2-grams:", "\\4-grams:", r"line 16: expected '\\2-grams:', found '"),
            ("-1\t<unk>", "x\t<unk>", "line 11: expected a log10 probability"),
            ("-1\t<unk>", "0.5\t<unk>", "line 11: expected a log10 probability"),
            ("-1\t<unk>", "nan\t<unk>", "line 11: expected a log10 probability"),
            ("a\t-0.1", "a\tnan", "line 12: expected a log10 probability"),
            ("a\t-0.1", "a\t100", "line 12: expected a log10 probability"),
            ("-0.5\tb </s>", "-0.5", "line 20: expected a log10 .* 2 word"),
            ("b </s>", "b c", "line 20: expected words that are among the 1-grams"),
            ("b </s>", "a b", "line 20: expected each 2-gram once"),
            ("-1\t<unk>", "-1\t<s>", "line 11: expected each word once"),
            (
                "\\end\\",
                "",
                r"line 28: expected '\\end\\', found the end of the fi",
            ),
            ("\\3-grams", "", r"line 23: expected '\\3-grams:', found ':'"),
        ],
    )
    def test_one_clear_message(self, old, new, message, tmp_path):
        path = tmp_path / "bad.arpa"
        path.write_text(FOREIGN.replace(old, new, 1))
        with pytest.raises(ValueError, match=rf"bad\.arpa, {message}"):
            read_arpa(path, ["a", "b"])

    @settings(max_examples=150, deadline=None)
    @given(
        start=st.integers(0, len(FOREIGN)),
        length=st.integers(0, 30),
        content=st.binary(max_size=30),
    )
    @example(start=0, length=len(FOREIGN), content=b"")
    @example(start=0, length=len(FOREIGN), content=b"\x1f\x8b")
    @example(start=0, length=0, content=b"\\data\\\nngram 1=999999999999999\n")
    def test_damaged_files_give_only_value_errors(
        self, start, length, content, tmp_path_factory
    ):
        path = tmp_path_factory.mktemp("arpa") / "bad.arpa"
        whole = FOREIGN.encode()
        path.write_bytes(whole[:start] + content + whole[start + length :])
        try:
            model = read_arpa(path, ["<eos>", "a", "b"], sentence_boundary="<eos>")
        except ValueError as error:
            assert str(error).startswith(str(path))
        else:
            pairs = model.context_length * [np.arange(3)]
            rows = model.probs_numpy(
                np.stack(pairs, 1) if pairs else np.zeros((1, 0), int)
            )
            np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-6)

    @settings(max_examples=100, deadline=None)
    @given(content=st.binary(max_size=300))
    def test_arbitrary_bytes(self, content, tmp_path_factory):
        path = tmp_path_factory.mktemp("arpa") / "bad.arpa"
        for data in (content, gzip.compress(content), gzip.compress(content)[:-5]):
            path.write_bytes(data)
            with pytest.raises(ValueError, match=r"bad\.arpa"):
                read_arpa(path, ["a"])

    def test_what_would_fill_the_memory_is_refused_at_once(self, tmp_path):
        path = tmp_path / "bad.arpa"
        header = b"".join(b"ngram %d=0\n" % n for n in range(1, 1000))
        for content, message in (
            (b"\n" * 10**8, "line 1001: expected at most 1,000 blank lines in a row"),
            (b"x\n" * 10**6, r"line 10001: expected '\\data\\' within 10,000 lines"),
            (b"x" * 10**8, "line 1: expected lines of at most 1,000,000 bytes"),
            (b"\\data\\\n" + header, "line 22: expected n-grams of at most 20 words"),
        ):
            path.write_bytes(gzip.compress(content, 1))
            tracemalloc.start()
            with pytest.raises(ValueError, match=rf"bad\.arpa, {message}"):
                read_arpa(path, ["a"])
            assert tracemalloc.get_traced_memory()[1] < 5e6
            tracemalloc.stop()

    @pytest.mark.parametrize("normalize", [True, False])
    def test_sums_above_one_are_warned_of(self, normalize, tmp_path):
        path = tmp_path / "odd.arpa"
        path.write_text(FOREIGN.replace("-0.39794\ta b", "-0.01\ta b"))
        kept = "divided" if normalize else r"stay as they are \(`normalize=False`\)"
        message = rf"after 'a' sum to 1\.\d+, .* \(1 of 3 contexts of 1 words\).*{kept}"
        with pytest.warns(UserWarning, match=message) as warned:
            model = read_arpa(path, ["a", "b", "other"], normalize=normalize)
        rows = model.probs_numpy(np.array([[0, 0], [1, 0]])).sum(axis=1)
        told = float(re.search(r"sum to ([\d.]+),", str(warned[0].message))[1])
        # Told with four digits.
        np.testing.assert_allclose(rows, 1 if normalize else told, rtol=5e-4)
        write_arpa(KneserNey(3).fit(TOKENS, len(WORDS)), WORDS, path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_arpa(path, WORDS, normalize=normalize)

    def test_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_arpa(tmp_path / "absent.arpa", ["a"])


class TestWritingErrors:
    model = KneserNey(2).fit([0, 1, 0], 2)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["a"], "the model has 2 words, `vocabulary_tokens` has 1"),
            (["a", "a"], "must be different words"),
            (["a", "b c"], "without white space; word 1 is 'b c'"),
            (["a", ""], "without white space; word 1 is ''"),
        ],
    )
    def test_words(self, words, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            write_arpa(self.model, words, tmp_path / "model.arpa")
        assert not list(tmp_path.iterdir())

    def test_floor(self, tmp_path):
        model = KneserNey(2, floor=0.1).fit([0, 1, 0], 2)
        with pytest.raises(ValueError, match=r"no back-off form; found `floor` 0\.1"):
            write_arpa(model, ["a", "b"], tmp_path / "model.arpa")

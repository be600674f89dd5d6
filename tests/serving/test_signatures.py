"""Tests of the signatures: strings in, the model's numbers out."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.models import RecurrentLanguageModel
from rlm_tf.serving import MAX_TEXT_BYTES, MAX_TEXT_TOKENS, LanguageModelService
from rlm_tf.serving.arguments import checked_tokens_of_texts
from tests.serving.exported import (
    RARE,
    generate,
    greedy_ids,
    reference_log_probs,
    score,
)

# === score ===

# Writing 5 to it sets the peak of this process's memory to its present size.
CLEAR_PEAK = pathlib.Path("/proc/self/clear_refs")

ODD_TEXTS = [
    "The cat sat",
    "",
    f"A {RARE} saw the cat\nthe dog",
    b"the \xff\xfe\x80 cat \xc3(",
    " \t ",
    "\n\n",
    "wörks Ünïcode \U0001f600",
]


def test_score_is_the_models(model, vocabulary, loaded):
    answer = score(loaded, ODD_TEXTS)
    longest = max(len(vocabulary.encode(text)) for text in ODD_TEXTS)
    assert answer["log_probs"].shape == (len(ODD_TEXTS), longest)
    for row, text in enumerate(ODD_TEXTS):
        ids = vocabulary.encode(text)
        count = len(ids)
        assert answer["lengths"][row] == count
        found = answer["log_probs"][row]
        assert not found[count:].any()
        names = [name.decode() for name in answer["tokens"][row]]
        assert names == [vocabulary.tokens[i] for i in ids] + [""] * (longest - count)
        if count:
            expected = reference_log_probs(model, vocabulary, text)
            np.testing.assert_allclose(found[:count], expected, atol=1e-5)
            np.testing.assert_allclose(answer["total"][row], expected.sum(), rtol=1e-5)
            np.testing.assert_allclose(
                answer["perplexity"][row], np.exp(-expected.mean()), rtol=1e-5
            )
        else:
            assert answer["total"][row] == 0.0
            assert answer["perplexity"][row] == 1.0


def test_invalid_utf8_is_one_unknown_token(vocabulary, loaded):
    names = score(loaded, [b"the \xff\xfe\x80 cat"])["tokens"][0]
    assert [name.decode() for name in names] == ["the", "<unk>", "cat"]


def test_batch_of_zero(loaded):
    answer = score(loaded, [])
    assert answer["log_probs"].shape == (0, 0)
    assert answer["tokens"].shape == (0, 0)
    for name in ("lengths", "total", "perplexity"):
        assert answer[name].shape == (0,)
    nothing = tf.constant([], tf.string)
    answer = loaded.signatures["next_token"](texts=nothing, k=tf.constant(3))
    assert answer["tokens"].shape == answer["probabilities"].shape == (0, 3)
    assert generate(loaded, []) == {"text": [], "full_text": []}


@pytest.mark.landing
def test_long_text_is_scored_in_windows(model, vocabulary, loaded, rng):
    words = rng.choice(["the", "cat", "dog", "saw", "sat", RARE], 25_000)
    text = " ".join(words)
    assert len(text) > 100_000
    answer = score(loaded, ["the cat", text])
    expected = reference_log_probs(model, vocabulary, text)
    # 25,000 steps carry rounding along.
    np.testing.assert_allclose(answer["log_probs"][1], expected, atol=1e-4)
    np.testing.assert_allclose(answer["total"][1], expected.sum(), rtol=1e-6)
    assert generate(loaded, [text])["full_text"][0].startswith(
        vocabulary.decode(vocabulary.encode(text))
    )


@pytest.mark.skipif(not CLEAR_PEAK.exists(), reason="needs Linux's /proc")
@pytest.mark.landing
def test_long_text_does_not_ask_for_all_logits():
    wide = Vocabulary([f"w{i}" for i in range(20_000)] + ["<eos>"], "whitespace")
    service = LanguageModelService(RecurrentLanguageModel(len(wide), 4, 1), wide)
    text = tf.constant([" ".join(["w1"] * 30_000)])
    CLEAR_PEAK.write_text("5")
    before = peak_memory()
    service.score(text)
    # 30,000 x 20,001 float32 are 2.4 GB; a window of 256 positions has 20 MB.
    assert peak_memory() - before < 500e6


def peak_memory() -> float:
    """Returns the largest size of this process since the peak was cleared."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024.0 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def test_many_texts_equal_one_by_one(loaded):
    texts = [" ".join(["the cat saw a dog"] * (i % 7)) for i in range(40)]
    together = score(loaded, texts)["total"]
    alone = [score(loaded, [text])["total"][0] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_windows_shrink_for_large_batches(model, vocabulary, loaded):
    texts = ["the cat saw a dog"] * 9000 + ["a dog saw the cat sat on the mat"]
    answer = score(loaded, texts)
    for row in (0, 8999, 9000):
        expected = reference_log_probs(model, vocabulary, texts[row])
        found = answer["log_probs"][row, : len(expected)]
        np.testing.assert_allclose(found, expected, atol=1e-5)


# === next_token ===


def test_next_token_is_the_models(model, vocabulary, loaded):
    texts = ["The cat", "", f"a {RARE}\n"]
    answer = loaded.signatures["next_token"](texts=tf.constant(texts), k=tf.constant(4))
    for row, text in enumerate(texts):
        ids = np.concatenate([[vocabulary.eos_id], vocabulary.encode(text)])
        logits = model(tf.constant(ids[np.newaxis], tf.int32))[0, -1]
        probs = tf.nn.softmax(tf.cast(logits, tf.float64)).numpy()
        best = np.argsort(-probs)[:4]
        names = [name.decode() for name in answer["tokens"][row].numpy()]
        assert names == [vocabulary.tokens[i] for i in best]
        np.testing.assert_allclose(answer["probabilities"][row], probs[best], rtol=1e-5)


def test_k_is_at_most_the_vocabulary_and_at_least_one(vocabulary, loaded):
    next_token = loaded.signatures["next_token"]
    answer = next_token(texts=tf.constant(["the"]), k=tf.constant(10**6))
    assert answer["tokens"].shape == (1, len(vocabulary))
    np.testing.assert_allclose(tf.reduce_sum(answer["probabilities"]), 1.0, rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="k must be at least 1"):
        next_token(texts=tf.constant(["the"]), k=tf.constant(0))


# === generate ===


def test_generate_is_greedy_at_temperature_zero(model, vocabulary, loaded):
    prompts = ["The cat", "", "a dog saw\n"]
    answer = generate(loaded, prompts, temperature=0.0)
    for row, prompt in enumerate(prompts):
        ids = greedy_ids(model, vocabulary, prompt, 6)
        whole = [*vocabulary.encode(prompt), *ids]
        assert answer["text"][row] == vocabulary.decode(ids)
        assert answer["full_text"][row] == vocabulary.decode(whole)


def test_generate_is_a_function_of_the_seed(loaded):
    prompts = ["The cat", "The cat", "a"]
    first = generate(loaded, prompts, max_tokens=20)
    assert generate(loaded, prompts, max_tokens=20) == first
    assert generate(loaded, prompts, max_tokens=20, seed=2) != first
    assert first["text"][0] != first["text"][1]
    alone = generate(loaded, prompts[:1], max_tokens=20)
    assert alone["text"] == first["text"][:1]


def test_generate_filters(vocabulary, loaded):
    one_word = generate(loaded, ["the"] * 5, top_k=1)
    assert one_word == generate(loaded, ["the"] * 5, temperature=0.0)
    assert one_word == generate(loaded, ["the"] * 5, top_p=0.0)
    assert one_word == generate(loaded, ["the"] * 5, eta=1.0, top_k=1)
    plain = generate(loaded, ["the"] * 5, max_tokens=12)
    for parameters in ({"eta": 0.2}, {"typical_p": 0.2}, {"calibration": 3.0}):
        assert generate(loaded, ["the"] * 5, max_tokens=12, **parameters) != plain


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_tokens": -1}, "max_tokens must be in"),
        ({"max_tokens": 10**9}, "max_tokens must be in"),
        ({"temperature": -1.0}, "temperature must be"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"temperature": float("inf")}, "temperature must be"),
        ({"top_k": -3}, "top_k must be"),
        ({"top_p": 1.5}, "top_p must be"),
        ({"top_p": float("nan")}, "top_p must be"),
        ({"eta": -0.1}, "eta must be"),
        ({"typical_p": 1.5}, "typical_p must be"),
        ({"calibration": float("inf")}, "calibration must be"),
        ({"calibration": float("nan")}, "calibration must be"),
        ({"calibration": 3e38}, r"calibration must be in \[-1e\+06, 1e\+06\]"),
        ({"calibration": -1.1e6}, r"calibration must be in \[-1e\+06, 1e\+06\]"),
        ({"max_tokens": [1, 2]}, r"max_tokens must be a scalar, found shape\] \[2\]"),
        ({"temperature": [1.0]}, r"temperature must be a scalar, found shape\] \[1\]"),
        ({"top_k": [1]}, "generate: top_k must be a scalar"),
        ({"calibration": [1.0]}, "generate: calibration must be a scalar"),
        ({"seed": [1]}, "generate: seed must be a scalar"),
    ],
)
def test_parameters_out_of_range_are_named(loaded, parameters, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        generate(loaded, ["the"], **parameters)


def test_odd_prompts_are_continued(loaded):
    answer = generate(loaded, ODD_TEXTS, max_tokens=4)
    assert len(answer["text"]) == len(ODD_TEXTS)
    assert all(answer["full_text"])
    assert generate(loaded, ["the"], max_tokens=0)["text"] == [""]


def test_calibration_at_its_bounds_is_answered(loaded):
    for calibration in (-1e6, 1e6):
        assert generate(loaded, ["the"], calibration=calibration)["text"][0]


# === Shapes and lengths ===


def test_shapes_of_texts_are_named(loaded):
    message = r"score: texts must have shape \[N\], found\] \["
    for texts in ("the cat", [["the", "cat"]]):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            score(loaded, texts)
        with pytest.raises(tf.errors.InvalidArgumentError, match="prompts must have"):
            generate(loaded, texts)
    next_token = loaded.signatures["next_token"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="k must be a scalar"):
        next_token(texts=tf.constant(["the"]), k=tf.constant([1, 2]))


def test_texts_have_a_greatest_length(loaded):
    most = tf.RaggedTensor.from_row_lengths(
        tf.zeros([MAX_TEXT_TOKENS + 1], tf.int32), [1, MAX_TEXT_TOKENS]
    )
    checked_tokens_of_texts("score", "texts", most)
    message = r"score: texts must have at most 100000 tokens each, found\] \[100001\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        score(loaded, ["the", "." * (MAX_TEXT_TOKENS + 1)])
    message = "at most 1000000 bytes each, found"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        score(loaded, [" " * (MAX_TEXT_BYTES + 1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"prompts.*{message}"):
        generate(loaded, [" " * (MAX_TEXT_BYTES + 1)])
    assert score(loaded, [" " * MAX_TEXT_BYTES])["lengths"].tolist() == [0]

"""A small model to export, and calls of its signatures with NumPy answers."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.models import RecurrentLanguageModel

TEXT = """The cat sat on the mat, didn't it?
A dog saw the cat; the cat saw a dog.
Ünïcode wörks 2 times (twice).
"""
RARE = "catamaran"


def make_model(vocabulary: Vocabulary, **options) -> RecurrentLanguageModel:
    options = {"width": 7, "num_layers": 2, "initializer_scale": 0.8, **options}
    return RecurrentLanguageModel(len(vocabulary), dropout=0.5, seed=2, **options)


def score(loaded, texts):
    answer = loaded.signatures["score"](texts=tf.constant(texts, tf.string))
    return {name: value.numpy() for name, value in answer.items()}


def generate(loaded, prompts, **parameters):
    parameters = {
        "max_tokens": 6,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "eta": 0.0,
        "typical_p": 1.0,
        "calibration": 0.0,
        "seed": 1,
        **parameters,
    }
    numbers = ("temperature", "top_p", "eta", "typical_p", "calibration")
    dtypes = dict.fromkeys(numbers, tf.float32)
    answer = loaded.signatures["generate"](
        prompts=tf.constant(prompts, tf.string),
        **{k: tf.constant(v, dtypes.get(k, tf.int32)) for k, v in parameters.items()},
    )
    return {name: [t.decode() for t in value.numpy()] for name, value in answer.items()}


def greedy_ids(model, vocabulary, prompt, count):
    """The `count` likeliest next tokens, each from the whole text before it."""
    ids = [vocabulary.eos_id, *vocabulary.encode(prompt)]
    for _ in range(count):
        logits = model(tf.constant([ids], tf.int32))[0, -1]
        ids.append(int(np.argmax(logits)))
    return ids[-count:]


def reference_log_probs(model, vocabulary, text):
    """Float64 log-softmax of the Keras model over the whole text at once."""
    ids = vocabulary.encode(text)
    read = np.concatenate([[vocabulary.eos_id], ids[:-1]])[np.newaxis]
    logits = model(tf.constant(read, tf.int32)).numpy()[0].astype(np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probs[np.arange(len(ids)), ids]

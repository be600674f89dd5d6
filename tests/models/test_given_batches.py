"""What batches and models that are not what they must be are told."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.evaluation import target_log_probs
from rlm_tf.layers import LSTMCell
from rlm_tf.models import (
    EncoderDecoder,
    InBatchContexts,
    NeighborModelMatching,
)
from tests.models.imm import imm_fixtures as fixtures

pytestmark = pytest.mark.eager

SIZE = fixtures.VOCABULARY
TOKENS = np.arange(24, dtype=np.int32).reshape(4, 6) % SIZE


def _changed(value: int) -> np.ndarray:
    tokens = TOKENS.copy()
    tokens[1, 2] = value
    return tokens


def _network(activation: str | None = None, pooled: bool = False) -> keras.Model:
    tokens = keras.Input([None], dtype="int32", name="tokens")
    x = keras.layers.Embedding(SIZE, 4)(tokens)
    if pooled:
        x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, keras.layers.Dense(SIZE, activation=activation)(x))


def _wrapped(model: keras.Model, contexts=None) -> keras.Model:
    return fixtures.eager(contexts or InBatchContexts(min_count=1), model=model)


@pytest.mark.parametrize("value", [SIZE, -1])
@pytest.mark.parametrize("wrong", ["tokens", "targets"])
def test_ids_of_no_word(value, wrong):
    batch = {"tokens": TOKENS, "targets": TOKENS, wrong: _changed(value)}
    x, y = batch["tokens"], batch["targets"]
    recurrent = fixtures.compiled(fixtures.language_model(), run_eagerly=True)
    models = (recurrent, _wrapped(fixtures.language_model()), _wrapped(_network()))
    for model in models:
        message = (
            rf"^{type(model).__name__}: `{wrong}` must be ids of the model's "
            rf"vocabulary\. Encode .* Ids must be in \[0, 7\), found {value}\.$"
        )
        for run in (model.train_on_batch, model.test_on_batch):
            with pytest.raises(ValueError, match=message):
                run(x, y)


def test_ids_of_no_word_in_an_encoder_decoder():
    model = EncoderDecoder(SIZE, LSTMCell(3), jit_loop=False)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    good, bad = TOKENS, _changed(8)
    for source, inputs, targets, wrong in (
        (bad, good, good, "source"),
        (good, bad, good, "decoder_inputs"),
        (good, good, bad, "targets"),
    ):
        with pytest.raises(ValueError, match=rf"`{wrong}` must be ids.*found 8\.$"):
            model.train_on_batch((source, inputs), targets)


def test_inputs_that_are_not_predicted_from_may_be_anything():
    model, weights = _wrapped(_network()), np.ones(TOKENS.shape, np.float32)
    weights[1] = 0.0
    tokens = TOKENS.copy()
    tokens[1] = -1
    fixtures.step(model, (tokens, TOKENS, weights))
    weights[1, 2] = 1.0
    with pytest.raises(ValueError, match=r"found -1\.$"):
        fixtures.step(model, (tokens, TOKENS, weights))


@pytest.mark.graph
def test_graphs_say_it_in_one_line():
    model = fixtures.wrapper(InBatchContexts(min_count=1), model=_network())
    with pytest.raises(ValueError, match=r"^Induced.*the model's.*found 7\.$") as error:
        fixtures.step(model, (TOKENS, _changed(SIZE)))
    assert len(str(error.value)) < 250
    softmax = _network("softmax")
    with pytest.raises(ValueError, match=r"not probabilities.*found (1|0\.99999)"):
        target_log_probs(softmax, TOKENS.ravel(), 2, 6, prefix=0)


@pytest.mark.parametrize("contexts", [InBatchContexts, fixtures.sampled])
def test_probabilities_are_no_logits(contexts):
    contexts = contexts()
    model = _wrapped(_network("softmax"), contexts)
    message = "`functional.*`: outputs must be logits, not prob.*Leave out the softmax"
    with pytest.raises(ValueError, match=message):
        model.train_on_batch(TOKENS, TOKENS)
    with pytest.raises(ValueError, match=message):
        model.test_on_batch(TOKENS, TOKENS)
    contexts.owner = None
    # Their logarithms are, however.
    _wrapped(_network("log_softmax"), contexts).train_on_batch(TOKENS, TOKENS)


def test_a_classifier_that_ends_in_a_softmax():
    network = keras.Sequential(
        [keras.Input([3]), keras.layers.Dense(2, activation="softmax")]
    )
    model = NeighborModelMatching(network)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    with pytest.raises(ValueError, match="NeighborModelMatching: outputs must be log"):
        model.train_on_batch(np.ones([4, 3], np.float32), np.array([0, 1, 0, 1]))


def test_models_of_another_shape():
    pooled = _network(pooled=True)
    message = (
        r"maps tokens \[B, T\] to logits \[B, T, V\], found tokens of shape \[4, 6\] "
        r"and outputs of shape \[4, 7\].*leave out layers that pool"
    )
    for contexts in (InBatchContexts(), fixtures.sampled()):
        with pytest.raises(ValueError, match=message):
            _wrapped(pooled, contexts).train_on_batch(TOKENS, TOKENS)
    with pytest.raises(ValueError, match=r"outputs of shape \[2, 7\].*pool"):
        target_log_probs(pooled, TOKENS.ravel(), 2, 6, prefix=0)
    mask = keras.Input([None], name="mask")
    inputs = {"tokens": pooled.inputs[0], "mask": mask}
    two = keras.Model(inputs, keras.layers.Embedding(SIZE, SIZE)(inputs["tokens"]))
    with pytest.raises(ValueError, match=r"takes tokens.* alone, found 2 inputs.*Wrap"):
        _wrapped(two).train_on_batch(TOKENS, TOKENS)


def test_dictionaries():
    for model in (_wrapped(_network()), fixtures.language_model()):
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        for batch, argument in (
            (({"ids": TOKENS}, TOKENS), "Inputs"),
            ((TOKENS, {"ids": TOKENS}), "Next tokens"),
        ):
            message = rf"{argument} must be no dictionary, found one of 'ids'.*map\("
            with pytest.raises(ValueError, match=message):
                fixtures.step(model, batch)

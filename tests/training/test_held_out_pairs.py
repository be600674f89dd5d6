"""Held-out pairs: what is logged, by hand; nothing of training changes."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.data import SentencePairs, contiguous_batches
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.training import HeldOutPairs, MetricsLog, ResumableBatches, read_metrics_log

pytestmark = pytest.mark.eager

_RNG = np.random.default_rng(1)
_TRAIN, _HELD = (
    np.concatenate([[*_RNG.integers(1, 9, 3), 0] for _ in range(20)]).astype(np.int32)
    for _ in range(2)
)


def _model():
    inner = RegularizedLanguageModel(9, LSTMCell(4), 1, jit_loop=False, seed=1)
    model = BootstrappedMutualInformation(
        inner, discriminator=PairDiscriminator(3, seed=2)
    )
    model.compile(keras.optimizers.SGD(0.1))
    return model


def _fit(callbacks):
    windows = contiguous_batches(_TRAIN, 2, 8, prefix=0)
    pairs = SentencePairs(_TRAIN, 0, 4, most_tokens=5)
    model = _model()
    data = ResumableBatches(windows, transform=pairs)
    model.fit(data.dataset, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
    return model


@pytest.mark.landing
def test_what_is_logged_by_hand(tmp_path):
    pairs = SentencePairs(_HELD, 0, 5, most_tokens=5, negatives=2, seed=7)
    log = MetricsLog(tmp_path / "log.jsonl")
    model = _fit([HeldOutPairs(pairs, batches=3), log])
    joint, marginal, above = [], [], []
    for step in range(3):
        drawn = pairs.draw(0, step)
        scores = np.array(model.pair_scores(drawn.first, drawn.second))
        joint.extend(scores)
        for k in range(2):
            apart = np.array(model.pair_scores(drawn.first, drawn.negatives[:, k]))
            marginal.extend(apart)
            above.extend(scores > apart)
    rows = read_metrics_log(log.path)
    expected = np.mean(joint) - np.log(np.mean(np.exp(marginal)))
    assert rows[-1]["val_mine"] == pytest.approx(expected, abs=1e-5)
    assert rows[-1]["val_pair_accuracy"] == pytest.approx(np.mean(above))
    # It only looks.
    for one, other in zip(model.weights, _fit([]).weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_mistakes():
    pairs = SentencePairs(_HELD, 0, 5, most_tokens=5)
    with pytest.raises(ValueError, match="`batches` must be an integer >= 1"):
        HeldOutPairs(pairs, 0)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="BootstrappedMutualInformation, found Seq"):
        model.fit(np.ones((1, 1)), np.ones(1), callbacks=[HeldOutPairs(pairs)])

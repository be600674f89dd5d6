"""Small models with BMI, batches with pairs, and BMI by loops."""

from __future__ import annotations

import numpy as np

from rlm_tf.data import SentencePairs, contiguous_batches
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.training import ResumableBatches

V = 11
_RNG = np.random.default_rng(3)
TEXT = np.concatenate(
    [[*_RNG.integers(1, V, size=_RNG.integers(1, 5)), 0] for _ in range(12)]
).astype(np.int32)


def language_model(dropout=0.0, **options):
    return RegularizedLanguageModel(
        V,
        LSTMCell(4),
        2,
        input_dropout=dropout,
        jit_loop=False,
        **{"dtype": "float64", "seed": 1, **options},
    )


def wrapped(inner=None, **options):
    inner = inner or language_model()
    return BootstrappedMutualInformation(
        inner,
        discriminator=PairDiscriminator(3, seed=2, dtype=inner.dtype_policy),
        **options,
    )


def batch(step=0, pairs=4, rows=2, **options):
    """The element of a window of `rows` rows with `pairs` pairs."""
    windows = contiguous_batches(TEXT, rows, 5, prefix=0)
    source = SentencePairs(TEXT, 0, pairs, most_tokens=6, **options)
    data = ResumableBatches(windows, transform=source)
    data.seek(0, step)
    return next(iter(data.dataset))


def features_by_loops(model, sentence, state=None):
    """phi of one sentence: each layer's greatest outputs, token by token."""
    kept = [token for token in sentence if token >= 0]
    hidden = model.hidden_features(np.array([kept]), state)
    return np.concatenate([np.max(values[0], axis=0) for values in hidden])


def score_by_loops(bmi, first, second):
    features = (features_by_loops(bmi.model, piece) for piece in (first, second))
    return float(bmi.discriminator(tuple(f[None] for f in features))[0])

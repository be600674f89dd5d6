"""Encoders with another rate of dropout: the same weights, and dropout acts."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.models import Electra, MaskedLanguageModel
from rlm_tf.models.encoders.other_dropout import masked_with_dropout, with_dropout
from tests.models.encoders.toy import VOCABULARY, encoder, texts

_TOKENS = texts()


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "pre"},
        {"residual_scaling": "admin", "positions": "both"},
        {"num_segments": 2, "embedding_width": 4, "width": 8},
    ],
)
def test_the_same_is_computed_and_dropout_acts(options):
    given = encoder(num_layers=2, position_slope=0.5, **options)
    found = with_dropout(given, 0.4)
    np.testing.assert_array_equal(found(_TOKENS), given(_TOKENS))
    assert found.dropout == 0.4 and given.dropout == 0.0
    in_training = found(_TOKENS, training=True)
    assert not np.allclose(in_training, given(_TOKENS, training=True))
    # Weights are its own.
    found.set_weights([0 * weight for weight in found.get_weights()])
    assert np.any(given.get_weights()[0])


def test_masks_are_of_a_seed():
    given = encoder()
    found = [
        np.array(with_dropout(given, 0.4, seed=seed)(_TOKENS, training=True))
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-3


@pytest.mark.parametrize("embeddings", ["shared", "separate", "disentangled"])
def test_a_detector_keeps_its_embeddings(embeddings):
    model = Electra(encoder(), encoder(seed=5), embeddings=embeddings)
    found = with_dropout(model.encoder(), 0.2)
    np.testing.assert_array_equal(found(_TOKENS), model.encoder()(_TOKENS))


def test_a_masked_language_model_keeps_its_head():
    given = MaskedLanguageModel(encoder(), clip_norm=2.0, seed=3)
    rng = np.random.default_rng(0)
    given.head.set_weights([rng.normal(size=w.shape) for w in given.head.get_weights()])
    found = masked_with_dropout(given, 0.3)
    np.testing.assert_array_equal(found(_TOKENS), given(_TOKENS))
    assert found(_TOKENS).shape[-1] == VOCABULARY
    assert (found.encoder.dropout, found.clip_norm, found.seed) == (0.3, 2.0, 3)


def test_a_rate_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"`rate` must lie in \[0, 1\)"):
        with_dropout(encoder(), 1.0)

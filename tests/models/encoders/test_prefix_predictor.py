"""Next pieces by a masked model: each prefix by hand, what later tokens change."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import SpecialIds
from rlm_tf.models import MaskedLanguageModel, PrefixPredictor
from tests.models.encoders.toy import VOCABULARY, encoder, texts
from tests.references.layers import set_random_weights

_TOKENS = texts(3, 7)


def _model(**options):
    model = MaskedLanguageModel(encoder(dtype="float64", **options))
    set_random_weights(model.head)
    return model


def _by_hand(model, row, t, hide):
    if hide == "prefix":
        shown = np.append(row[: t + 1], 4)
    else:
        shown = np.append(row, 0)
        shown[t + 1 :] = np.where(shown[t + 1 :] == 0, 0, 4)
        shown[t + 1] = 4
    return model(shown[None])[0, t + 1].numpy()


@pytest.mark.parametrize("hide", ["prefix", "mask"])
@pytest.mark.parametrize("positions", ["t5", "both", "rotary"])
def test_every_prefix_by_hand(hide, positions):
    model = _model(num_layers=2, positions=positions, max_length=8)
    predictor = PrefixPredictor(model, hide)
    found = predictor(_TOKENS).numpy()
    assert found.shape == (3, 7, VOCABULARY)
    for row, tokens in enumerate(_TOKENS):
        for t in range(7):
            if tokens[t]:
                expected = _by_hand(model, tokens, t, hide)
                np.testing.assert_allclose(found[row, t], expected, rtol=1e-7)
    places = np.array([[2, 1], [0, 3], [2, 0]])
    np.testing.assert_allclose(
        predictor.at(_TOKENS, places), found[places[:, 0], places[:, 1]], rtol=1e-9
    )


@pytest.mark.parametrize("positions", ["t5", "absolute", "rotary"])
def test_one_causal_layer_is_every_prefix(positions):
    model = _model(positions=positions, max_length=8)
    prefix, causal = (
        PrefixPredictor(model, hide)(_TOKENS).numpy() for hide in ("prefix", "causal")
    )
    present = _TOKENS != 0
    np.testing.assert_allclose(causal[present], prefix[present], rtol=1e-7)
    deep = _model(num_layers=2, positions=positions, max_length=8)
    prefix, causal = (
        PrefixPredictor(deep, hide)(_TOKENS).numpy() for hide in ("prefix", "causal")
    )
    # In a prefix tokens see the [MASK] behind them, too.
    assert not np.allclose(causal[:, 2], prefix[:, 2], rtol=1e-3)


@pytest.mark.parametrize("hide", ["prefix", "mask", "causal"])
def test_later_tokens_change_nothing_but_for_their_number(hide):
    predictor = PrefixPredictor(_model(num_layers=2), hide)
    tokens = np.array([[2, 5, 6, 7, 8, 3]])
    others = np.array([[2, 5, 6, 9, 5, 3]])
    shorter = np.array([[2, 5, 6, 3, 0, 0]])
    found = [predictor(each).numpy()[0, :3] for each in (tokens, others, shorter)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    leaks = not np.allclose(found[0], found[2], rtol=1e-6)
    assert leaks == (hide == "mask")


@pytest.mark.parametrize("hide", ["prefix", "mask", "causal"])
def test_a_text_as_long_as_the_encoder_reads(hide):
    """Nothing is behind its last token; what is behind others does not change."""
    full, wider = (
        _model(num_layers=2, positions="absolute", max_length=length)
        for length in (7, 8)
    )
    for one, other in zip(wider.weights, full.weights, strict=True):
        other.assign(one[:7] if one.shape != other.shape else one)
    predictor = PrefixPredictor(full, hide)
    places = np.array([[0, 5], [2, 0], [1, 2]])
    expected = PrefixPredictor(wider, hide).at(_TOKENS, places)
    np.testing.assert_allclose(predictor.at(_TOKENS, places), expected, rtol=1e-7)
    with pytest.raises(ValueError, match="behind a text of 7 tokens the encoder reads"):
        predictor(_TOKENS)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no token fits behind"):
        predictor.at(_TOKENS, [[0, 6]])


@pytest.mark.parametrize("hide", ["prefix", "mask", "causal"])
def test_segments_and_special_ids(hide):
    model = _model(num_layers=1, num_segments=2)
    special = SpecialIds(0, 13, 14, 15, 16)
    tokens = np.array([[14, 5, 6, 15, 7, 8, 15]])
    segments = np.array([[0, 0, 0, 0, 1, 1, 1]])
    found = PrefixPredictor(model, hide, special)(tokens, segments=segments).numpy()
    for t in range(7):
        shown = np.append(tokens[0], 0)
        shown[t + 2 :] = 16 * (shown[t + 2 :] != 0) if hide == "mask" else 0
        shown[t + 1] = 16
        own = np.append(segments[0], 0)
        own[t + 1] = own[t]
        expected = model.logits_at(shown[None], [[0, t + 1]], own[None])
        np.testing.assert_allclose(found[0, t], expected[0], rtol=1e-7)


def test_mistakes():
    with pytest.raises(ValueError, match="`hide` must be one of prefix, mask, causal"):
        PrefixPredictor(_model(), "none")
    with pytest.raises(ValueError, match="distinct ids below 20, found 0, 1, 2, 3, 20"):
        PrefixPredictor(_model(), special=SpecialIds(0, 1, 2, 3, 20))

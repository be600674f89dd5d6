"""Next pieces by a masked model: each prefix by hand, what later tokens change."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_an_unknown_way():
    with pytest.raises(ValueError, match="`hide` must be one of prefix, mask, causal"):
        PrefixPredictor(_model(), "none")

"""`score_pairs`: what a discriminator and its model say of pairs of texts."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Vocabulary
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.serving import export_language_model

pytestmark = pytest.mark.landing

TEXT = "a b c .\nd e .\nf g a b .\n"
FIRST, SECOND = ["a b .", "d", ""], ["c .\n", "e f g .", "a"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.build(TEXT, "words")


@pytest.fixture(scope="module")
def bmi(vocabulary) -> BootstrappedMutualInformation:
    model = RegularizedLanguageModel(len(vocabulary), LSTMCell(5), 2, seed=1)
    return BootstrappedMutualInformation(
        model, discriminator=PairDiscriminator(4, seed=2), pooling="mean"
    )


@pytest.fixture(scope="module")
def loaded(bmi, vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "model"
    return tf.saved_model.load(str(export_language_model(bmi, vocabulary, folder)))


def _ids(vocabulary, text):
    ids = [*vocabulary.encode(text)]
    # An end is added where there is none.
    return ids if ids and ids[-1] == vocabulary.eos_id else [*ids, vocabulary.eos_id]


def test_scores_are_those_of_the_model(bmi, vocabulary, loaded):
    found = loaded.signatures["score_pairs"](
        first=tf.constant(FIRST), second=tf.constant(SECOND)
    )
    for row, pair in enumerate(zip(FIRST, SECOND, strict=True)):
        x, y = (_ids(vocabulary, text) for text in pair)
        log_probs = tf.nn.log_softmax(bmi.model(np.array([x + y])))[0]
        places = range(len(x) - 1, len(x) + len(y) - 1)
        expected = sum(log_probs[p, t] for p, t in zip(places, y, strict=True))
        assert float(found["log_probs"][row]) == pytest.approx(
            float(expected), rel=1e-4
        )
        score = bmi.pair_scores(np.array([x]), np.array([y]))
        assert float(found["scores"][row]) == pytest.approx(float(score[0]), rel=1e-4)


def test_texts_that_end_with_an_end_are_checked_right(tmp_path):
    """Of few words, those that the export is checked with end so, too."""
    small = Vocabulary.build("a\nb", "words")
    model = RegularizedLanguageModel(len(small), LSTMCell(2), 1, seed=1)
    bmi = BootstrappedMutualInformation(model, discriminator=PairDiscriminator(2))
    folder = export_language_model(bmi, small, tmp_path / "model")
    assert (folder / "saved_model.pb").exists()


def test_a_pair_does_not_depend_on_the_others(loaded):
    function = loaded.signatures["score_pairs"]
    whole = function(first=tf.constant(FIRST), second=tf.constant(SECOND))
    alone = function(first=tf.constant(FIRST[1:2]), second=tf.constant(SECOND[1:2]))
    for name in ("scores", "log_probs"):
        np.testing.assert_allclose(alone[name], whole[name][1:2], rtol=1e-5)
    none = tf.constant([], tf.string)
    assert function(first=none, second=none)["scores"].shape == [0]


def test_other_signatures_are_there_and_mistakes_are_told(loaded):
    assert {"score", "next_token", "generate", "generate_default"} < set(
        loaded.signatures
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be as many"):
        loaded.signatures["score_pairs"](
            first=tf.constant(FIRST[:1]), second=tf.constant(SECOND)
        )

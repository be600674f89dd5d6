"""Generators have ELECTRA's shares of their detector's sizes."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.models import Electra, generator_encoder
from tests.models.encoders.toy import encoder, masked, texts
from tests.references.transformers_reference import ORACLE


@pytest.mark.parametrize("case", ORACLE["generator_sizes"])
def test_sizes_of_the_oracle(case, monkeypatch):
    made = []
    monkeypatch.setattr(
        "rlm_tf.layers.TransformerEncoder._create_layers", lambda *_: made.append(1)
    )
    width = case["disc_hidden"]
    heads = {"num_heads": width // 64, "feed_forward": None}
    detector = encoder(width=width, num_layers=12, **heads)
    found = generator_encoder(detector, width=case["frac"], layers=1 / 3)
    assert len(made) == 2
    assert (found.width, found.num_heads) == (case["gen_hidden"], case["heads"])
    assert (found.feed_forward or 4 * found.width) == case["ff"]
    assert found.num_layers == 4


@pytest.mark.parametrize("embeddings", ["shared", "disentangled"])
def test_it_fits_a_detector_with_shared_embeddings(embeddings):
    detector = encoder(width=8, num_layers=2, embedding_width=None)
    generator = generator_encoder(detector, width=0.5, layers=0.5, seed=3)
    assert (generator.width, generator.num_layers, generator.seed) == (4, 1, 3)
    assert generator.embedding.width == 8
    model = Electra(generator, detector, embeddings=embeddings)
    found = model.objective_terms(masked(texts()), None, None, training=True)
    assert np.all(np.isfinite(found["discriminator"].loss))


def test_another_seed_makes_other_weights():
    detector = encoder(width=8)
    one, other = (generator_encoder(detector, seed=seed) for seed in (1, 2))
    assert one.get_config() | {"seed": 2, "name": other.name} == other.get_config()
    assert np.any(one.get_weights()[0] != other.get_weights()[0])


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan")])
def test_mistakes(share):
    with pytest.raises(ValueError, match=r"generator_encoder: `layers` must"):
        generator_encoder(encoder(), layers=share)

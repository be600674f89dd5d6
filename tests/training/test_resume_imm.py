"""A run with induced model matching, a bank and a start rule resumes exactly."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.data import Noising
from rlm_tf.data.batches.contiguous_batches import contiguous_batches
from rlm_tf.models.imm.in_batch_contexts import InBatchContexts
from rlm_tf.models.imm.induced_model_matching import InducedModelMatching
from rlm_tf.models.imm.sampled_contexts import SampledContexts
from rlm_tf.models.language.recurrent_language_model import RecurrentLanguageModel
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    ExactResume,
    LearningRateHalving,
    ResumableBatches,
    StartRule,
)
from tests.training.toy import InterruptAt, Interruption, assert_same, interrupt, train

TOKENS = np.random.default_rng(5).integers(0, 7, 4 * 3 * 6)


def program(counted=TOKENS):
    model = InducedModelMatching(
        RecurrentLanguageModel(7, 6, 1, dropout=0.3, seed=3),
        KneserNey(order=2).fit(counted, 7),
        InBatchContexts(min_count=2, bank_size=20),
    )
    return {
        "model": model,
        "optimizer": keras.optimizers.SGD(1.0),
        "batches": ResumableBatches(contiguous_batches(TOKENS, 4, 3, prefix=0)),
        "callbacks": [LearningRateHalving(), StartRule(8.0, learning_rate=0.7)],
        "epochs": 3,
    }


def sampled():
    options = program()
    options["model"].contexts = SampledContexts(TOKENS, k=2, window=3, seed=4)
    return options


def noised():
    batches = contiguous_batches(TOKENS, 4, 3, prefix=0)
    return {
        "model": RecurrentLanguageModel(7, 6, 1, dropout=0.3, seed=3),
        "optimizer": keras.optimizers.SGD(1.0),
        "batches": ResumableBatches(batches, transform=Noising(TOKENS, 7, gamma0=0.9)),
        "callbacks": [LearningRateHalving()],
        "epochs": 2,
    }


@pytest.mark.landing
@pytest.mark.parametrize(
    ("make", "moments"), [(program, (3, 8)), (sampled, (8,)), (noised, (8,))]
)
def test_resumes(tmp_path, make, moments):
    expected = train(tmp_path / "one", **make())
    if make is program:
        assert expected["callbacks"][1].started
        assert any("bank" in name and v.size for name, v in expected["arrays"].items())
    for steps in moments:
        with pytest.raises(Interruption):
            train(
                tmp_path / "other",
                **make(),
                extra=(InterruptAt(steps, interrupt),),
                every_steps=1,
            )
    result = train(tmp_path / "other", **make())
    assert result["first"] == (1, 3 if make is program else 1)
    assert_same(result, expected)


@pytest.mark.landing
def test_checkpoints_hold_no_tables_and_refuse_others(tmp_path):
    result = train(tmp_path, **{**program(), "epochs": 1})
    tables = result["model"].restricted_models[0].weights
    store = ExactResume(tmp_path / "checkpoints", program()["batches"]).store
    arrays = store.load_latest().arrays
    assert tables and not any("restricted" in name for name in arrays)
    halving = result["callbacks"][0].get_state()["best"]["arrays"]
    assert len(halving) == len(result["model"].weights) - len(tables)
    with pytest.raises(ValueError, match="written with other restricted models"):
        train(tmp_path, **{**program(TOKENS[::-1]), "epochs": 2})

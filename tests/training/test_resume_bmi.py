"""A run through both phases of BMI, with pairs and averages, resumes exactly."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.averaging import TriggeredAverage, WeightAveraging
from rlm_tf.data import SentencePairs, VariableWindows, contiguous_batches
from rlm_tf.layers import PairDiscriminator
from rlm_tf.models import AWDLanguageModel, BootstrappedMutualInformation
from rlm_tf.training import AfterSteps, ResumableBatches, SwitchPhase
from tests.training.toy import InterruptAt, Interruption, assert_same, interrupt, train

_RNG = np.random.default_rng(5)
# 40 sentences of up to three words.
TOKENS = np.concatenate(
    [[*_RNG.integers(1, 7, size=_RNG.integers(1, 4)), 0] for _ in range(40)]
).astype(np.int32)


def program():
    model = AWDLanguageModel(
        7, embedding_width=3, units=(4, 3), mixture_components=2, base_window=8, seed=3
    )
    windows = VariableWindows(TOKENS, 4, 8, prefix=0, deviation=2.0, least=3, seed=1)
    valid = contiguous_batches(TOKENS[:40], 4, 5, prefix=0)
    return {
        "model": BootstrappedMutualInformation(
            model,
            discriminator=PairDiscriminator(3, hidden_dropout=0.2),
            phase_two="raml",
            clip_norm=0.5,
        ),
        "optimizer": keras.optimizers.SGD(1.0),
        "batches": ResumableBatches(
            windows, transform=SentencePairs(TOKENS, 0, 4, most_tokens=5, seed=2)
        ),
        "callbacks": [
            SwitchPhase(AfterSteps(windows.steps)),
            WeightAveraging(
                TriggeredAverage(1, latest=windows.steps, rule="released"),
                valid.dataset(),
                monitor="nll",
            ),
        ],
        "epochs": 2,
    }


@pytest.mark.landing
def test_resumes(tmp_path):
    """Interrupted in Phase I and in Phase II, it ends with the same bits."""
    expected = train(tmp_path / "one", **program())
    steps = program()["batches"].steps
    assert expected["callbacks"][0].switched_to == 1
    assert expected["callbacks"][1].average.start_step <= steps + 1
    for moment in (1, steps + 1):
        with pytest.raises(Interruption):
            train(
                tmp_path / "other",
                **program(),
                extra=(InterruptAt(moment, interrupt),),
                every_steps=1,
            )
    result = train(tmp_path / "other", **program())
    assert_same(result, expected)

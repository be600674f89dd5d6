"""What callbacks count and keep is the same after a resumption."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.training import (
    DivergenceGuard,
    LearningRateHalving,
    TrainingDivergedError,
)
from tests.training.test_divergence import Break
from tests.training.test_resume import interrupted
from tests.training.toy import STEPS, assert_same, train


def test_decays_count_on(tmp_path):
    def make():
        # No epoch but the first gains so much: one decay, then the end.
        return {"callbacks": [LearningRateHalving(max_decays=1, min_gain=100.0)]}

    expected = train(tmp_path / "one", **make())
    assert expected["epochs"] == [0, 1, 2]
    assert expected["callbacks"][0].decays == 1
    resumed = interrupted(tmp_path / "two", 2 * STEPS + 2, make=make, every_steps=1)
    assert_same(resumed, expected)
    assert resumed["callbacks"][0].decays == 1


def test_recoveries_count_on(tmp_path):
    def make(*more):
        guard = DivergenceGuard(every_steps=1, recover=True, max_recoveries=1)
        return {"callbacks": [guard, Break(0, 2), *more]}

    def make_twice():
        return make(Break(1, 3))

    with pytest.raises(TrainingDivergedError, match="There were 1 recoveries"):
        interrupted(tmp_path, STEPS + 1, make=make_twice, every_steps=1)


def test_weights_to_fall_back_to_are_kept(tmp_path):
    def make():
        # Looks at steps 2, 4; the run that goes on from step 3 has seen none of its own
        # when it diverges.
        guard = DivergenceGuard(every_steps=2, recover=True)
        return {"callbacks": [guard, Break(0, 3)], "epochs": 1}

    expected = train(tmp_path / "one", **make())
    resumed = interrupted(tmp_path / "two", 4, make=make, every_steps=1)
    assert_same(resumed, expected)
    assert resumed["callbacks"][0].recoveries == 1
    assert np.all(np.isfinite(resumed["history"]["loss"]))

"""Scores of detectors: the oracle, scikit-learn, nothing to divide by; GLUE."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics

from rlm_tf.evaluation import detection_scores, glue_average
from tests.references.transformers_reference import ORACLE

_CASE = ORACLE["detection_scores"]


def test_scores_of_the_oracle():
    found = detection_scores(_CASE["probs"], _CASE["labels"], _CASE["padding"])
    for name, value in found._asdict().items():
        assert value == pytest.approx(_CASE[name], abs=1e-12)


def test_scores_of_scikit_learn():
    rng = np.random.default_rng(0)
    probs, labels = rng.random(300), rng.random(300) < 0.2
    found = detection_scores(probs, labels)
    said = probs >= 0.5
    for name in ("accuracy", "precision", "recall", "f1"):
        expected = getattr(sklearn.metrics, f"{name}_score")(labels, said)
        assert getattr(found, name) == pytest.approx(expected, abs=1e-12)


def test_nothing_to_divide_by():
    assert detection_scores([0.1, 0.2], [0, 0]) == (1.0, 0.0, 0.0, 0.0)
    assert detection_scores([0.9], [1], [1]) == (0.0, 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"must have one shape, found \(1,\), \(2,\)"):
        detection_scores([0.9], [1, 0])


def test_averages_of_the_oracle():
    for row in ORACLE["glue_average"]["rows"].values():
        found = glue_average(row["scores"])
        assert found == pytest.approx(row["average"], abs=1e-9)
        assert round(found, 1) == pytest.approx(row["printed"])


def test_tasks_that_are_missing_are_named():
    scores = dict(next(iter(ORACLE["glue_average"]["rows"].values()))["scores"])
    scores["wnli"] = scores.pop("rte")
    with pytest.raises(ValueError, match="missing: rte, unknown: wnli"):
        glue_average(scores)

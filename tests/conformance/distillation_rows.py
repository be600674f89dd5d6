"""The rows of the conformance table that belong to distillation."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf import distillation, layers, metrics, models
from tests.conformance.row import TOKENS, VOCABULARY, Row

_PROBS = [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]]

VECTORS = np.array([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]], np.float32)
# Two examples, of which the second counts half.
LABELLED = ((VECTORS, np.array([0, 1])), np.array([1, 0]), np.array([1, 0.5], "f4"))
LABELLED_VECTORS = (VECTORS, *LABELLED[1:])
# Maps of a teacher and of its student, and labels.
_RNG = np.random.default_rng(8)
_TEACHER = _RNG.normal(size=[3, 4, 4, 2]).astype(np.float32)
_STUDENT = _RNG.normal(size=[3, 4, 4, 3]).astype(np.float32)
# With other than default arguments.
STRATEGIES = {
    "KD": lambda: distillation.KD(3.0),
    "ReverseKD": lambda: distillation.ReverseKD(3.0),
    "StandardisedKD": lambda: distillation.StandardisedKD(3.0),
    "GeneralisedJSD": lambda: distillation.GeneralisedJSD(0.3, 2.0),
    "DecoupledKD": lambda: distillation.DecoupledKD(2.0, 3.0, 2.0),
    "DIST": lambda: distillation.DIST(1.0, 3.0, 2.0),
    "AttentionTransfer": lambda: distillation.AttentionTransfer("a", "b"),
    "NeuronSelectivity": lambda: distillation.NeuronSelectivity("a", "b"),
    "SimilarityPreserving": lambda: distillation.SimilarityPreserving("a", "b"),
    "RelationalKD": lambda: distillation.RelationalKD("a", "b"),
    "ProbabilisticTransfer": lambda: distillation.ProbabilisticTransfer("a", "b"),
    "FitNet": lambda: distillation.FitNet("a", "b"),
    "CorrelationCongruence": lambda: distillation.CorrelationCongruence(
        "a", "b", width=2
    ),
    "ContrastiveRepresentation": lambda: distillation.ContrastiveRepresentation(
        "a",
        "b",
        num_examples=3,
        width=4,
        negatives=2,
        temperature=0.5,
        momentum=0.3,
        seed=2,
    ),
    "VariationalInformation": lambda: distillation.VariationalInformation(
        "a", "b", variance=2.0
    ),
    "FactorTransfer": lambda: distillation.FactorTransfer("a", "b", share=1.0),
    "SelfSupervised": lambda: distillation.SelfSupervised(
        "a",
        "b",
        temperature=0.4,
        keep=0.5,
        rotated_weight=0.5,
        rotated_temperature=2.0,
        width=3,
    ),
    "ActivationBoundary": lambda: distillation.ActivationBoundary("a", "b", margin=0.5),
}


def distil(strategy: distillation.Strategy) -> tf.Tensor:
    """Returns a strategy's losses of three examples."""
    if isinstance(strategy, distillation.ContrastiveRepresentation):
        # Files never have them.
        strategy.set_labels([0, 1, 1])
    given = {"labels": np.array([0, 1, 1]), "ids": np.array([0, 1, 2])}
    given["views"] = distillation.Views(
        _TEACHER[:, :2, 0], _STUDENT[:, :2, 0], _TEACHER[:, :2, 1], _TEACHER[:, :2, 2]
    )
    context = {name: given[name] for name in strategy.needs}
    if isinstance(strategy, distillation.SelfSupervised):
        return strategy(_TEACHER[:, 3, 0], _STUDENT[:, 3, 0], **context)
    if strategy.teacher_layer_name is not None:
        return strategy(_TEACHER, _STUDENT, training=False, **context)
    return strategy(_TEACHER[:, 0, :, 0], _STUDENT[:, 0, :, 0], **context)


def classifier(seed: int) -> keras.Sequential:
    """Returns a classifier of vectors."""
    first = keras.initializers.GlorotUniform(seed)
    return keras.Sequential(
        [keras.Input([3]), keras.layers.Dense(2, kernel_initializer=first)]
    )


def _distillation() -> models.Distillation:
    return models.Distillation(
        classifier(3),
        classifier(4),
        [(distillation.KD(3.0), 0.5), distillation.ReverseKD(2.0)],
        student_weight=0.5,
    )


def language_model(seed: int) -> models.RegularizedLanguageModel:
    """Returns a language model with a penalty and dropout."""
    return models.RegularizedLanguageModel(
        VOCABULARY,
        layers.LSTMCell(4),
        1,
        layer_dropout=0.2,
        activation_penalty=0.5,
        jit_loop=False,
        seed=seed,
        clip_norm=2.0,
    )


def _language_distillation() -> models.LanguageDistillation:
    return models.LanguageDistillation(
        [language_model(3), language_model(4)],
        language_model(5),
        [(distillation.KD(1.0), 0.5), distillation.ReverseKD(2.0)],
        student_weight=0.5,
        clip_norm=1.0,
    )


def _language_teacher() -> models.StudentOrientedLanguageTeacher:
    return models.StudentOrientedLanguageTeacher(
        language_model(6),
        lipschitz=0.1,
        # What it needs is no part of files.
        consistency=0.0,
        ramp="cyclic",
        epochs=3,
        norm="inf",
        variant="authors",
    )


def calibrate(metric: keras.metrics.Metric) -> tf.Tensor:
    """Returns what a metric says of three predictions, one of which counts twice."""
    metric.reset_state()
    metric.update_state([0, 0, 2], _PROBS, sample_weight=[1.0, 2.0, 1.0])
    return tf.convert_to_tensor(metric.result())


def compare(metric: keras.metrics.Metric) -> tf.Tensor:
    """Returns what a metric says of three pairs, one of which counts twice."""
    metric.reset_state()
    student = tf.reverse(_PROBS, [0])
    metric.update_state(_PROBS, student, sample_weight=[1.0, 2.0, 1.0])
    return tf.convert_to_tensor(metric.result())


def _teacher() -> models.StudentOrientedTeacher:
    return models.StudentOrientedTeacher(
        classifier(2),
        lipschitz=0.1,
        # What it needs is no part of files.
        consistency=0.0,
        ramp="cosine",
        epochs=3,
        norm="inf",
        variant="authors",
        l1=0.01,
        label_smoothing=0.1,
    )


DISTILLATION_ROWS = [
    *(Row(name, make, distil) for name, make in STRATEGIES.items()),
    Row(
        "Distillation",
        _distillation,
        lambda model: model(VECTORS),
        VECTORS,
        LABELLED_VECTORS,
    ),
    Row("LanguageDistillation", _language_distillation, lambda model: model(TOKENS)),
    Row(
        "StudentOrientedLanguageTeacher",
        _language_teacher,
        lambda model: model(TOKENS),
    ),
    Row(
        "CrossFittedTeacher",
        lambda: models.CrossFittedTeacher([classifier(2), classifier(3)], [0, 1, 1]),
        lambda model: model((VECTORS, np.array([1, 0]))),
        VECTORS,
    ),
    Row(
        "StudentOrientedTeacher",
        _teacher,
        lambda model: model(VECTORS),
        VECTORS,
        LABELLED,
    ),
    Row(
        "ExpectedCalibrationError",
        lambda: metrics.ExpectedCalibrationError(5, name="c"),
        calibrate,
    ),
    Row("BrierScore", lambda: metrics.BrierScore(name="b"), calibrate),
    Row(
        "NegativeLogLikelihood",
        lambda: metrics.NegativeLogLikelihood(name="n"),
        calibrate,
    ),
    Row("Agreement", lambda: metrics.Agreement(name="a"), compare),
    Row("TeacherDivergence", lambda: metrics.TeacherDivergence(name="t"), compare),
]

"""Language students and teachers, tiny."""

from __future__ import annotations

import numpy as np

from rlm_tf.data import PlacedBatches
from rlm_tf.models import LanguageDistillation, TeacherPredictions
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference

V = fixtures.VOCABULARY


def model_of(seed):
    """Returns a language model."""
    return fixtures.language_model(seed=seed)


def student_of(teacher, losses, student=None, **options):
    """Returns a compiled student."""
    student = model_of(5) if student is None else student
    return fixtures.compiled(
        LanguageDistillation(teacher, student, losses, **options), run_eagerly=True
    )


def written(path, teacher=None, k=V, temperature=1.0, **batches):
    """Returns stored predictions of the stream."""
    teacher = model_of(8) if teacher is None else teacher
    return TeacherPredictions.write(
        teacher, fixtures.batches(**batches), path, k=k, temperature=temperature
    )


def placed(**batches):
    """Returns the first batch of the stream, with places."""
    return next(iter(PlacedBatches(fixtures.batches(**batches)).dataset()))


def log_probs_of(model, tokens):
    """Returns log-probabilities `[B, T, V]`, float64."""
    return np.log(reference.softmax(model(tokens).numpy().astype(np.float64)))

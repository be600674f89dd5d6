"""How a language student differs from its teacher, token by token."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.data.batches.contiguous_batches import contiguous_batches
from rlm_tf.evaluation.monte_carlo import MonteCarloDropout
from rlm_tf.evaluation.reliability import reliability
from rlm_tf.models.distillation.language_teachers import (
    ModelTeachers,
    RestrictedTeacher,
    mean_of_samples,
    teachers_of,
)
from rlm_tf.numerics import multiply_no_nan_log


class TokenFidelity(NamedTuple):
    """What teacher and student say of the tokens of a group, or of all.

    Attributes:
        tokens: How many.
        teacher_nll: Mean negative log-likelihood of the teacher, nats.
        student_nll: That of the student.
        teacher_calibration: Expected calibration error of the teacher.
        student_calibration: That of the student.
        agreement: Share of the tokens for which both hold the same word for the most
            probable one.
        divergence: Mean KL(teacher || student), nats.
    """

    tokens: int
    teacher_nll: float
    student_nll: float
    teacher_calibration: float
    student_calibration: float
    agreement: float
    divergence: float


class _PerToken(NamedTuple):
    """`[N]` of each."""

    teacher_nll: np.ndarray
    student_nll: np.ndarray
    teacher_confidence: np.ndarray
    student_confidence: np.ndarray
    teacher_right: np.ndarray
    student_right: np.ndarray
    same: np.ndarray
    divergence: np.ndarray


def frequency_groups(
    tokens: npt.ArrayLike, vocabulary_size: int, groups: int = 4
) -> np.ndarray:
    """Returns a group of each word, so that each has about as many tokens of a text.

    Args:
        tokens: Int `[N]`, of the training text.
        vocabulary_size: V.
        groups: Their number; group 0 has the most frequent words.

    Returns:
        Int `[V]`; words that the text does not have are in the last group.

    Raises:
        ValueError: If ids or numbers are out of range.
    """
    name = "frequency_groups"
    check_integer(name, "groups", groups, 1)
    counts = np.bincount(
        checked_tokens(name, tokens, vocabulary_size), minlength=vocabulary_size
    )
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    found = np.empty(vocabulary_size, np.int64)
    total = max(int(counts.sum()), 1)
    found[order] = np.minimum(before * groups // total, groups - 1)
    return found


def token_fidelity(
    teacher: Any,
    student: Any,
    tokens: npt.ArrayLike,
    *,
    prefix: int,
    groups: npt.ArrayLike | None = None,
    dropout: MonteCarloDropout | None = None,
    batch_size: int = 8,
    window: int = 64,
    bins: int = 15,
) -> list[TokenFidelity]:
    """Compares a student with its teacher on a text.

    States are carried over the text; no array is as large as tokens by words.

    Args:
        teacher: A language model, a list, whose probabilities are averaged, or a
            restricted model; such a one needs a floor for finite likelihoods.
        student: A language model, or a list.
        tokens: Int `[N]`.
        prefix: The token before the first.
        groups: Int `[V]`, of each word that is to be predicted, from 0 on, such as
            `frequency_groups`; None: all are one.
        dropout: Of the teacher, whose probabilities are then the mean under many masks.
        batch_size: Rows that are read in parallel; each starts without a past.
        window: Tokens of a step.
        bins: Of the calibration errors.

    Returns:
        All tokens first, and then each group, if there are groups.

    Raises:
        ValueError: If a model is none, vocabularies differ, or a restricted model is
            given and `dropout`.
    """
    name = "token_fidelity"
    students = student if isinstance(student, list | tuple) else [student]
    pair = (teachers_of(name, teacher), ModelTeachers(name, students))
    if dropout is not None and isinstance(pair[0], RestrictedTeacher):
        raise ValueError(f"{name}: a restricted model has no `dropout`.")
    sizes = {each.vocabulary_size for each in pair} - {None}
    if len(sizes) > 1:
        raise ValueError(
            f"{name}: teacher and student must have one vocabulary, found sizes "
            f"{sorted(map(str, sizes))}."
        )
    tokens = np.asarray(tokens)
    batches = contiguous_batches(tokens, batch_size, window, prefix=prefix)
    found, targets = _per_token(pair, batches, dropout)
    parts = [np.ones(len(targets), bool)]
    if groups is not None:
        own = np.asarray(groups)[targets]
        parts += [own == group for group in range(int(np.max(groups)) + 1)]
    return [_summary(found, part, bins) for part in parts]


def _per_token(
    pair: tuple[RestrictedTeacher | ModelTeachers, ModelTeachers],
    batches: Any,
    dropout: MonteCarloDropout | None,
) -> tuple[_PerToken, np.ndarray]:
    """Returns what is said of each token, and the tokens, in the order of batches."""
    teachers, students = pair

    @tf.function(reduce_retracing=True)
    def taught(tokens: tf.Tensor, start: tf.Tensor, states: Any) -> Any:
        return teachers.forward(tokens, start, states, dropout is not None)

    @tf.function(reduce_retracing=True)
    def step(
        teacher: tf.Tensor,
        tokens: tf.Tensor,
        start: tf.Tensor,
        targets: tf.Tensor,
        states: Any,
    ) -> Any:
        student, states = students.forward(tokens, start, states)
        said = [teacher, student]
        best = [tf.argmax(each, axis=1, output_type=tf.int32) for each in said]
        teacher_probs = tf.exp(teacher)
        kl = multiply_no_nan_log(teacher_probs, teacher)
        kl -= multiply_no_nan_log(teacher_probs, student)
        rows = (
            *(-tf.gather(each, targets, batch_dims=1) for each in said),
            *(tf.exp(tf.reduce_max(each, axis=1)) for each in said),
            *(tf.cast(each == targets, tf.float32) for each in best),
            tf.cast(best[0] == best[1], tf.float32),
            tf.reduce_sum(kl, axis=1),
        )
        return rows, states

    samples = 1 if dropout is None else dropout.samples
    pasts = [teachers.zero_states(batches.batch_size) for _ in range(samples)]
    states: Any = students.zero_states(batches.batch_size)
    found: list[list[np.ndarray]] = []
    words: list[np.ndarray] = []
    with contextlib.ExitStack() as stack:
        if dropout is not None:
            for model in teachers.models:
                stack.enter_context(dropout.of(model))
        for index in range(batches.steps):
            (tokens, start), targets, weights = batches.element(index)
            flat = targets.ravel()
            window = (tf.constant(tokens), tf.constant(start))
            said = mean_of_samples(taught, window, pasts)
            rows, states = step(said, *window, tf.constant(flat), states)
            counts = weights.ravel() > 0
            found.append([row.numpy()[counts].astype(np.float64) for row in rows])
            words.append(flat[counts])
    columns = (np.concatenate(column) for column in zip(*found, strict=True))
    return _PerToken(*columns), np.concatenate(words)


def _summary(found: _PerToken, part: np.ndarray, bins: int) -> TokenFidelity:
    own = _PerToken(*(column[part] for column in found))
    if not part.any():
        nothing = float("nan")
        return TokenFidelity(0, *(nothing for _ in TokenFidelity._fields[1:]))
    teacher, student = (
        reliability(np.clip(confidence, 0, 1), right > 0, bins).expected_error
        for confidence, right in (
            (own.teacher_confidence, own.teacher_right),
            (own.student_confidence, own.student_right),
        )
    )
    return TokenFidelity(
        int(part.sum()),
        float(own.teacher_nll.mean()),
        float(own.student_nll.mean()),
        teacher,
        student,
        float(own.same.mean()),
        float(own.divergence.mean()),
    )

"""Distils: a student on a teacher, the same student alone, and a table of both."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

    from rlm_tf.commands.distillation.results import Distilled


def distil(
    teacher: Any,
    student: Any,
    train: Any,
    *,
    valid: Any = None,
    test: Any = None,
    losses: Any = None,
    student_weight: Any = None,
    epochs: int,
    export: str | os.PathLike[str] | None = None,
    vocabulary: Any = None,
    optimizer: keras.optimizers.Optimizer | None = None,
    folder: str | os.PathLike[str] | None = None,
    batch_size: int | None = None,
    window: int = 35,
    temperature: float = 1.0,
    overwrite: bool = False,
    seed: int = 0,
    verbose: int = 1,
) -> Distilled:
    """Trains a student on a teacher, and the same student alone.

    What the student is worth is seen beside its teacher, and beside what it would have
    been without: the table of the result has parameters, megabytes, milliseconds of one
    prediction, accuracy or perplexity, negative log-likelihood, calibration error, and
    how often it says what its teacher says. Both have the same first weights, and those
    of their best epoch on validation data in the end.

    Args:
        teacher: A classifier whose outputs are logits, or a language model; or a list,
            whose probabilities are averaged.
        student: A model, which is not changed; or, of language models, the share of the
            teacher's widths that it has.
        train: Of classifiers arrays `(x, labels)`, or what `ResumableBatches` takes,
            such as `ImageBatches`; of language models tokens int `[N]`, or a `Corpus`.
        valid: Of classifiers arrays `(x, labels)`, of language models tokens; a
            `Corpus` has its own.
        test: The same, for the table; None: that of the corpus, or `valid`.
        losses: Strategies of `rlm_tf.distillation`, or pairs of one and its
            coefficient. None: 0.5 times KD, at temperature 4 of classifiers, 1 of
            language models. They learn, too, and are not copied.
        student_weight: Of labels, or of the text; None: 0.5.
        epochs: Passes over the training data, of each of both trainings.
        export: Folder of a SavedModel of the student, to be made.
        vocabulary: Of language models; a `Corpus` has its own. An export needs one.
            Models do not keep their words, so that sizes alone are compared here; the
            command compares words, too, which are written beside models.
        optimizer: None: Adam at 0.001, of language models at 0.003. The rate of
            language models is halved after each epoch that does not gain on validation
            text; at the fourth one training ends.
        folder: Of checkpoints and stored predictions: a killed run goes on, and one of
            more epochs. It is of these models, data and settings; of training data that
            are no arrays nothing is checked. None: a run begins anew.
        batch_size: None: 64 examples, or 20 rows of text.
        window: Tokens of a window of text.
        temperature: That the export divides a classifier's logits by, such as that of
            `rlm_tf.evaluation.fit_temperature`.
        overwrite: Whether an export is replaced.
        seed: Of order and dropout.
        verbose: 1: some lines of progress are printed; 0: none.

    Raises:
        ValueError: If models and data do not fit, or the folder is of others.
        FileExistsError: If the export is there.
    """
    import keras
    import numpy as np

    from rlm_tf.commands.distillation.classifiers import distil_classifier, example_of
    from rlm_tf.commands.distillation.language import distil_language
    from rlm_tf.data import Corpus
    from rlm_tf.models import CrossFittedTeacher
    from rlm_tf.models.distillation.shrunk import shrunk
    from rlm_tf.models.language.interface import language_model_of
    from rlm_tf.serving import export_classifier, export_language_model
    from rlm_tf.serving.export_functions import classifier_inputs
    from rlm_tf.serving.export_path import check_export_path

    teachers = list(teacher) if isinstance(teacher, list | tuple) else [teacher]
    if not teachers:
        raise ValueError("distil: there must be one teacher at least, found none.")
    for each in teachers:
        if not isinstance(each, keras.Model | CrossFittedTeacher):
            raise ValueError(
                "distil: a teacher must be a Keras model, found "
                f"{type(each).__name__}; n-grams teach in LanguageDistillation."
            )
    if export is not None:
        check_export_path(export, overwrite)
    if isinstance(train, Corpus):
        valid = train.valid if valid is None else valid
        test = train.test if test is None else test
        vocabulary = train.vocabulary if vocabulary is None else vocabulary
        train = train.train
    if valid is None:
        raise ValueError("distil: give `valid`, which epochs are chosen on.")
    train, valid, test = map(_tokens, (train, valid, test))
    is_language = isinstance(train, np.ndarray) and train.ndim == 1
    if isinstance(student, float | int):
        if not is_language:
            raise ValueError(
                "distil: classifiers say no widths; `student` must be a model, found "
                f"{student!r}."
            )
        if not hasattr(language_model_of(teachers[0]), "vocabulary_size"):
            raise ValueError(
                "distil: `student` may be a share of the widths of this library's "
                f"language models; the teacher is {type(teachers[0]).__name__} "
                f"{teachers[0].name!r}: give a student, a model or its file."
            )
        student = shrunk(teachers[0], float(student))
    if not isinstance(student, keras.Model):
        raise ValueError(
            "distil: `student` must be a Keras model"
            f"{' or a share of widths' if is_language else ''}, found {student!r}; "
            "rlm_tf.load_model() reads one from its file."
        )
    place = None if folder is None else pathlib.Path(folder)
    given: dict[str, Any] = {
        "losses": losses,
        "student_weight": student_weight,
        "epochs": epochs,
        "optimizer": optimizer,
        "folder": place,
        "seed": seed,
        "verbose": verbose,
    }
    if not is_language:
        example = example_of(valid)
        if export is not None:
            classifier_inputs("distil", student, temperature, example)
        found = distil_classifier(
            teachers, student, train, valid, test, batch_size=batch_size or 64, **given
        )
        if export is not None:
            export_classifier(
                found.student,
                export,
                temperature=temperature,
                example=example,
                overwrite=overwrite,
            )
        return found
    if export is not None:
        if vocabulary is None:
            raise ValueError("distil: an export answers strings; give `vocabulary`.")
        size = getattr(language_model_of(student), "vocabulary_size", len(vocabulary))
        if size != len(vocabulary):
            raise ValueError(
                f"distil: `vocabulary` has {len(vocabulary):,} words, the student "
                f"{size:,}."
            )
    found = distil_language(
        teachers,
        student,
        train,
        np.asarray(valid),
        None if test is None else np.asarray(test),
        prefix=0 if vocabulary is None else vocabulary.eos_id,
        batch_size=batch_size or 20,
        window=window,
        **given,
    )
    if export is not None:
        export_language_model(found.student, vocabulary, export, overwrite=overwrite)
    return found


def _tokens(given: Any) -> Any:
    """Returns tokens of a list or a tensor as an array; others as they are."""
    import numpy as np
    import tensorflow as tf

    if isinstance(given, tf.Tensor):
        return given.numpy()
    is_list = isinstance(given, list) and given and not np.ndim(given[0])
    return np.asarray(given) if is_list else given

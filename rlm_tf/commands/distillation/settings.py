"""Settings of `rlm_tf distil`; every field is a flag."""

from __future__ import annotations

import dataclasses
import math
import pathlib

from rlm_tf.command_line.flags import setting
from rlm_tf.commands.settings import check_given


@dataclasses.dataclass(frozen=True)
class DistilSettings:
    """Settings of `rlm_tf distil`; None: chosen by what is distilled."""

    teacher: tuple[str, ...] = setting(
        (), "Folders of `rlm_tf train`, or .keras files; several are averaged."
    )
    student: str | None = setting(
        None, "A .keras file, or, of language models, the share of the widths: 0.5."
    )
    corpus: str | None = setting(
        None,
        "The text: a name, or a file that is cut 8:1:1. Without: what the first folder "
        "was trained on.",
    )
    arrays: str | None = setting(
        None,
        "Of classifiers, an .npz file with x_train, y_train and so on, or x and y, "
        "which are cut 8:1:1.",
    )
    digits: bool = setting(
        False,
        "In place of all that: scikit-learn's digits, 300 to train on, a teacher that "
        "is trained first, and a student of a quarter of its size.",
    )
    export: str | None = setting(None, "Folder of the student's SavedModel.")
    output_dir: str = setting(
        "runs/distil", "Folder of student.keras, the table and checkpoints."
    )
    epochs: int = setting(20, "Passes over the data, of each of both trainings.")
    temperature: float | None = setting(
        None, "Of KD; by default 4 of classifiers, 1 of language models."
    )
    weight: float = setting(0.5, "Of KD.")
    student_weight: float = setting(0.5, "Of labels, or of the text.")
    learning_rate: float | None = setting(
        None, "Of Adam; by default 0.001, of language models 0.003."
    )
    batch_size: int | None = setting(
        None, "Examples of a batch, by default 64; rows of text, 20."
    )
    window: int = setting(35, "Tokens of a window of text.")
    seed: int = setting(1, "Of order, dropout and how arrays are cut.")
    resume: bool = setting(True, "Goes on where a run in --output_dir was ended.")
    overwrite: bool = setting(False, "Whether what both folders hold is replaced.")


def check_distil_settings(settings: DistilSettings) -> None:
    """Raises ValueError for settings that no run can have, or a missing file."""
    check_given("rlm_tf distil", settings, "export")
    _check_numbers(settings)
    given = ("teacher", "student", "corpus", "arrays")
    if settings.digits:
        for name in given:
            if getattr(settings, name):
                raise ValueError(f"--digits and --{name} do not go together.")
        return
    check_given("rlm_tf distil", settings, "teacher", "student")
    for path in settings.teacher:
        if not pathlib.Path(path).exists():
            raise ValueError(f"--teacher={path}: there is no such file or folder.")
    folders = [path for path in settings.teacher if pathlib.Path(path).is_dir()]
    if settings.arrays is not None and (settings.corpus is not None or folders):
        raise ValueError(
            "--arrays are of classifiers; --corpus and folders of `rlm_tf train` are "
            "of language models: give one or the other."
        )
    if settings.arrays is None and settings.corpus is None and not folders:
        raise ValueError(
            "rlm_tf distil needs --arrays of classifiers, or --corpus of language "
            "models, unless --teacher is a folder of `rlm_tf train`."
        )
    if settings.arrays is not None and not pathlib.Path(settings.arrays).is_file():
        raise ValueError(f"--arrays={settings.arrays}: there is no such file.")
    share = share_of(settings)
    if share is None and not pathlib.Path(str(settings.student)).is_file():
        raise ValueError(
            f"--student={settings.student}: there is no such file; expected a .keras "
            "file, or a share such as 0.5."
        )
    if share is not None and not 0 < share <= 1:
        raise ValueError(f"--student must lie in (0, 1], found {settings.student}.")
    if share is not None and settings.arrays is not None:
        raise ValueError(
            "--student must be a .keras file: classifiers say no widths that a share "
            "could be of."
        )


def _check_numbers(settings: DistilSettings) -> None:
    for name in ("epochs", "batch_size", "window"):
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name} must be at least 1, found {value}.")
    for name in ("temperature", "learning_rate"):
        value = getattr(settings, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"--{name} must be positive, found {value}.")
    for name in ("weight", "student_weight"):
        value = getattr(settings, name)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"--{name} must not be negative, found {value}.")


def share_of(settings: DistilSettings) -> float | None:
    """Returns the share that `--student` is, or None if it is a file."""
    try:
        return float(str(settings.student))
    except ValueError:
        return None

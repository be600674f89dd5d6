"""How long the thesis' schedules would take."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.distill_digits import fitting, students, teachers
from experiments.distill_digits.config import SETS, TEACHERS, DigitsConfig
from experiments.kit.timing import Step, median_seconds, train_function_step
from rlm_tf.models import StudentOrientedTeacher

# Rows of a step that is timed of images that are read from files, which are large.
_ROWS = 4


def project(config: DigitsConfig, seed: int) -> dict[str, Any]:
    """Returns seconds of a step, and hours of all epochs, of each run.

    Steps are of noise, so that no image has to be there; of large images a few rows
    are timed, and more taken to be as many times as long. What FT and SSKD learn from
    the teacher alone, and AB's first stage, are left out.
    """
    kind = SETS[config.data]
    rows = min(_ROWS, config.batch_size) if kind.size else config.batch_size
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, *kind.shape)).astype(np.float32)
    labels = rng.integers(0, kind.classes, config.examples)
    batch = [((x, np.arange(rows)), labels[:rows])]
    steps_of_epoch = -(-config.examples // config.batch_size)
    found: dict[str, dict[str, float]] = {"step_seconds": {}, "hours": {}}

    def add(name: str, step: Step, is_student: bool) -> None:
        seconds = median_seconds(step, config.project_steps) * config.batch_size / rows
        epochs = fitting.epochs_of(config, is_student)
        found["step_seconds"][name] = seconds
        found["hours"][name] = epochs * steps_of_epoch * seconds / 3600

    for arm in config.teachers:
        network = fitting.network(config.teacher_network, seed, config.data)
        model = teachers.student_oriented(
            config, network, dict(TEACHERS[arm]), config.examples
        )
        model.compile(fitting.optimizer(config, steps_of_epoch))
        add(
            f"teacher {config.teacher_network}, {arm}",
            train_function_step(model, batch),
            False,
        )
    teacher = fitting.network(config.teacher_network, seed, config.data)
    for name in config.networks:
        for method in config.methods:
            student = fitting.network(name, seed, config.data)
            if method == "alone":
                own: Any = StudentOrientedTeacher(
                    student, lipschitz=0.0, consistency=0.0, epochs=config.epochs
                )
                own.compile(fitting.optimizer(config, steps_of_epoch, is_student=True))
            else:
                chosen = students.recipe_of(config, method, "standard", labels, 0, seed)
                own = students.compiled(
                    config,
                    teacher,
                    student,
                    chosen.losses,
                    chosen.student_weight,
                    steps_of_epoch,
                )
            add(f"{name}, {method}", train_function_step(own, batch), True)
    return {"timed_rows": rows, **found}

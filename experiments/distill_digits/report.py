"""The tables of teachers and students of digits."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.distill_digits import published
from experiments.distill_digits.config import METHODS, SETS, TEACHERS
from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import paired_difference

Row = Mapping[str, Any]
_BASE = "standard"
_MAIN_STUDENT = "wrn-16-1"


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws accuracies of teachers and students, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    own = of_data(rows, "digits")
    if students_of(own, "kd"):
        draw(own, folder / "students.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    found = {}
    for data in SETS:
        own = of_data(rows, data)
        start = "" if data == "digits" else f"{data}-"
        kd = students_of(own, "kd")
        if kd:
            found[f"{start}students"] = teachers_and_students(own)
            found[f"{start}fidelity"] = fidelities(kd)
        if any(row["role"] == "teacher" for row in own):
            found[f"{start}uncertainty"] = uncertainty(own)
        if any(row["method"] not in ("", "kd", "alone") for row in own):
            found[f"{start}methods"] = methods(own)
    projected = [row for row in rows if row["role"] == "projected"]
    if projected:
        found["projected"] = projections(projected)
    return found


def of_data(rows: Sequence[Row], data: str) -> list[Row]:
    """Returns the teachers and students of a set of images."""
    return [row for row in rows if row["role"] != "projected" and row["data"] == data]


def projections(rows: Sequence[Row]) -> str:
    """Returns what the thesis' schedules would take."""
    lines = [
        (row["data"], name, f"{row['step_seconds'][name]:.2f}", f"{hours:,.0f}")
        for row in rows
        for name, hours in row["hours"].items()
    ]
    return table(("images", "run", "seconds a step", "hours, projected"), lines)


def students_of(rows: Sequence[Row], method: str) -> list[Row]:
    """Returns the students of a method."""
    return [row for row in rows if row["method"] == method]


def accuracies(rows: Sequence[Row], name: str = "accuracy") -> dict[int, float]:
    """Returns percent right (or `top5`) on the test images, by seed."""
    return {row["seed"]: 100 * row["test"][name] for row in rows if name in row["test"]}


def teachers_of(rows: Sequence[Row], arm: str, network: str) -> list[Row]:
    """Returns teachers of a kind and a network."""
    return [
        row
        for row in rows
        if (row["role"], row["teacher"], row["network"]) == ("teacher", arm, network)
    ]


def less(own: Mapping[int, float], base: Mapping[int, float]) -> str:
    """Returns the paired difference over the seeds that both have."""
    pairs = [(own[seed], base[seed]) for seed in own if seed in base]
    return paired_difference(pairs) if pairs and own is not base else ""


def teachers_and_students(rows: Sequence[Row]) -> str:
    """Returns teachers' accuracies and those of students by KD (Tables 2.1, B.3)."""
    lines = []
    data = rows[0]["data"]
    has_five = any("top5" in row["test"] for row in rows)
    for network, of in _pairs(rows):
        own = [row for row in rows if row["network"] == network]
        taught = [row for row in own if row["teacher_network"] == of]
        kd = {
            arm: accuracies(
                [row for row in students_of(taught, "kd") if row["teacher"] == arm]
            )
            for arm in TEACHERS
        }
        alone = accuracies(students_of(own, "alone"))
        base = kd[_BASE]
        if alone:
            lines.append(
                (
                    network,
                    "none",
                    len(alone),
                    "",
                    with_deviation([*alone.values()]),
                    less(alone, base),
                    "",
                    "",
                    "",
                    *(_five([], students_of(own, "alone"), "", "") if has_five else ()),
                )
            )
        for arm, found in kd.items():
            if not found:
                continue
            teachers = teachers_of(rows, arm, of)
            students = [r for r in students_of(taught, "kd") if r["teacher"] == arm]
            of_teacher = accuracies(teachers)
            lines.append(
                (
                    network,
                    arm,
                    len(found),
                    with_deviation([*of_teacher.values()]) if of_teacher else "",
                    with_deviation([*found.values()]),
                    less(found, base),
                    less(found, alone),
                    *published.accuracies(data, network, arm),
                    *(_five(teachers, students, data, arm) if has_five else ()),
                )
            )
    titles = (
        "student",
        "teacher",
        "seeds",
        "teacher, %",
        "student, %",
        f"less that of `{_BASE}`, ± 2 standard errors",
        "less alone",
        "the paper, teacher",
        "the paper, student",
        *(_FIVE if has_five else ()),
    )
    return table(titles, lines, (0, 1))


def _pairs(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Returns networks of students and of their teachers."""
    return distinct(
        (row["network"], row["teacher_network"]) for row in students_of(rows, "kd")
    )


_FIVE = (
    "teacher, top 5, %",
    "student, top 5, %",
    "the paper, teacher, top 5",
    "the paper, student, top 5",
)


def _five(
    teachers: Sequence[Row], students: Sequence[Row], data: str, arm: str
) -> tuple[str, ...]:
    """Returns how often the label is among the five most probable classes."""
    own = [accuracies(rows, "top5") for rows in (teachers, students)]
    cells = [with_deviation([*each.values()]) if each else "" for each in own]
    return (*cells, *published.top_five(data, arm))


def uncertainty(rows: Sequence[Row]) -> str:
    """Returns calibration of teachers, before and after a temperature (Table 2.3)."""
    lines = []
    networks = distinct(row["network"] for row in rows if row["role"] == "teacher")
    for network, arm in itertools.product(networks, TEACHERS):
        own = teachers_of(rows, arm, network)
        if not own:
            continue
        lines.append(
            (
                network,
                arm,
                len(own),
                *(
                    with_deviation([row[part][name] for row in own], 3)
                    for part in ("test", "scaled")
                    for name in ("ece", "nll")
                ),
                with_deviation([row["temperature"] for row in own]),
                published.uncertainty(own[0]["data"], network, arm),
            )
        )
    titles = (
        "network",
        "teacher",
        "seeds",
        "ECE",
        "NLL",
        "ECE, TS",
        "NLL, TS",
        "temperature",
        "the paper, these four",
    )
    return table(titles, lines, (0, 1))


def fidelities(rows: Sequence[Row]) -> str:
    """Returns how often students say what their teachers do (Table 2.4)."""
    lines = []
    for network in distinct(row["network"] for row in rows):
        for arm in TEACHERS:
            own = [r for r in rows if (r["network"], r["teacher"]) == (network, arm)]
            if own:
                shares = [100 * row["fidelity"]["agreement"] for row in own]
                kl = [row["fidelity"]["divergence"] for row in own]
                lines.append(
                    (
                        network,
                        arm,
                        len(own),
                        with_deviation(shares),
                        with_deviation(kl, 3),
                        published.fidelity(own[0]["data"], network, arm),
                    )
                )
    titles = (
        "student",
        "teacher",
        "seeds",
        "same class, %",
        "KL, nats",
        "the paper, same class, %",
    )
    return table(titles, lines, (0, 1))


def methods(rows: Sequence[Row]) -> str:
    """Returns the first student by method, of two teachers (Table B.2)."""
    first = next(row["network"] for row in rows if row["method"] not in ("", "alone"))
    own = [row for row in rows if row["network"] == first]
    arms = [arm for arm in TEACHERS if any(r["teacher"] == arm for r in own)]
    arms = [arm for arm in arms if arm in (_BASE, "soteacher-authors")]
    lines = []
    for method in METHODS:
        found = {
            arm: accuracies(
                [r for r in students_of(own, method) if r["teacher"] == arm]
            )
            for arm in arms
        }
        if method == "alone" or not any(found.values()):
            continue
        kd = accuracies([r for r in students_of(own, "kd") if r["teacher"] == _BASE])
        base = found.get(_BASE, {})
        lines.append(
            (
                method,
                max(map(len, found.values())),
                *(
                    with_deviation([*each.values()]) if each else ""
                    for each in found.values()
                ),
                less(found[arms[-1]], base) if len(arms) > 1 else "",
                less(base, kd) if method != "kd" else "",
                f"{np.mean([r['seconds'] for r in students_of(own, method)]):.0f}",
                " / ".join(published.METHODS.get(method, ())),
            )
        )
    titles = (
        "method",
        "seeds",
        *(f"of `{arm}`, %" for arm in arms),
        "the last less the first, ± 2 standard errors",
        f"of `{_BASE}`, less kd",
        "seconds",
        "the paper, standard and SoTeacher",
    )
    return table(titles, lines)


def draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws students' accuracies against their teachers'."""
    figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
    for arm in TEACHERS:
        student = accuracies(
            [
                row
                for row in students_of(rows, "kd")
                if row["teacher"] == arm and row["network"] == _MAIN_STUDENT
            ]
        )
        teacher = accuracies(
            [r for r in rows if r["role"] == "teacher" and r["teacher"] == arm]
        )
        if student and teacher:
            panel.errorbar(
                np.mean([*teacher.values()]),
                np.mean([*student.values()]),
                xerr=np.std([*teacher.values()]),
                yerr=np.std([*student.values()]),
                fmt="o",
                capsize=2,
                label=arm,
            )
    alone = accuracies(
        [r for r in students_of(rows, "alone") if r["network"] == _MAIN_STUDENT]
    )
    if alone:
        mean = float(np.mean([*alone.values()]))
        panel.axhline(mean, color="#999999", linestyle=":", label="student alone")
    panel.set(xlabel="teacher, % right", ylabel="student, % right")
    panel.legend(fontsize=7)
    save(figure, path)

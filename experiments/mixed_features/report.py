"""The tables of teachers where the truth is known."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.kit.drawing import table, with_deviation
from experiments.kit.paired import paired_difference
from experiments.mixed_features import figures
from experiments.mixed_features.lemmas import SIZES_COUNT

Row = Mapping[str, Any]
_BASE = "standard"
_STAND_INS = ("test_ece", "test_nll", "test_accuracy")
_TITLES = {
    "test_ece": "calibration error, test",
    "test_nll": "NLL, test",
    "test_accuracy": "accuracy, test",
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the figures of what there is, and returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.draw_all(rows, folder)
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    found = {}
    arms = of_stage(rows, "arms")
    if arms:
        found["teachers"] = teachers(arms)
        found["students"] = students(arms)
        found["stand_ins"] = stand_ins(arms)
        found["smoothness"] = smoothness(arms)
    if of_stage(rows, "checkpoints"):
        found["checkpoints"] = checkpoints(of_stage(rows, "checkpoints"))
    if of_stage(rows, "sweep"):
        found["sweep"] = sweep(of_stage(rows, "sweep"))
    if of_stage(rows, "noise"):
        found["noise"] = noise(of_stage(rows, "noise"))
    if of_stage(rows, "lemmas"):
        row = of_stage(rows, "lemmas")[0]
        found["convergence"], found["residual"] = lemmas(row)
        found["sizes"] = sizes(row)
    return found


def of_stage(rows: Sequence[Row], stage: str) -> list[Row]:
    """Returns the rows of a stage, by their number of examples."""
    own = [row for row in rows if row["stage"] == stage]
    return sorted(own, key=lambda row: row.get("examples", 0))


def numbers(row: Row, arm: str, role: str, name: str) -> list[float]:
    """Returns a number of each instance."""
    return row["arms"][arm][role][name]


def less(base_arm: str, row: Row, arm: str, role: str, name: str, digits: int) -> str:
    """Returns how far an arm is above another, instance by instance."""
    if arm == base_arm:
        return ""
    base = numbers(row, base_arm, role, name)
    pairs = list(zip(numbers(row, arm, role, name), base, strict=True))
    return paired_difference(pairs, digits)


def teachers(rows: Sequence[Row]) -> str:
    """Returns how far teachers are from the truth of their training examples."""
    lines = []
    for row in rows:
        for arm, found in row["arms"].items():
            if "teacher" not in found:
                continue
            own = found["teacher"]
            lines.append(
                (
                    f"{row['examples']:,}",
                    arm,
                    f"{np.mean(own['tv']):.3f}",
                    less(_BASE, row, arm, "teacher", "tv", 3),
                    f"{np.mean(own['kl']):.3f}",
                    f"{100 * np.mean(own['test_accuracy']):.1f}",
                    f"{np.mean(own['test_nll']):.3f}",
                    f"{np.mean(own['test_ece']):.3f}",
                )
            )
        best = row["bayes"]
        accuracy, nll = (np.mean(best[name]) for name in ("accuracy", "nll"))
        lines.append(
            (
                f"{row['examples']:,}",
                "the truth",
                "0",
                "",
                "0",
                f"{100 * accuracy:.1f}",
                f"{nll:.3f}",
                "",
            )
        )
    titles = (
        "examples",
        "teacher",
        "TV to the truth, its examples",
        f"less `{_BASE}`, ± 2 standard errors",
        "KL",
        "accuracy, %, test",
        "NLL, test",
        "ECE, test",
    )
    return table(titles, lines, (1,))


def students(rows: Sequence[Row]) -> str:
    """Returns what students reach."""
    lines = []
    for row in rows:
        for arm, found in row["arms"].items():
            own = found["student"]
            lines.append(
                (
                    f"{row['examples']:,}",
                    arm,
                    f"{100 * np.mean(own['accuracy']):.1f}",
                    f"{np.mean(own['nll']):.4f}",
                    less(_BASE, row, arm, "student", "nll", 4),
                    less("none", row, arm, "student", "nll", 4),
                    f"{np.mean(own['tv']):.4f}",
                    less(_BASE, row, arm, "student", "tv", 4),
                )
            )
    titles = (
        "examples",
        "teacher",
        "accuracy, %",
        "NLL",
        f"less `{_BASE}`, ± 2 standard errors",
        "less `none`",
        "TV to the truth, test",
        f"less `{_BASE}`",
    )
    return table(titles, lines, (1,))


def stand_ins(rows: Sequence[Row]) -> str:
    """Returns how well what can be measured orders teachers as the truth does.

    Spearman's rank correlation with the total variation, and with the student's loss,
    over teachers of one instance; the mean over instances, two standard errors.
    """
    lines = []
    for row in rows:
        arms = [arm for arm, found in row["arms"].items() if "teacher" in found]
        truth = np.array([numbers(row, arm, "teacher", "tv") for arm in arms])
        losses = np.array([numbers(row, arm, "student", "nll") for arm in arms])
        for name in ("tv", *_STAND_INS):
            values = np.array([numbers(row, arm, "teacher", name) for arm in arms])
            shown = [
                paired_difference(
                    [
                        (float(spearmanr(values[:, each], other[:, each])[0]), 0.0)
                        for each in range(values.shape[1])
                    ]
                )
                for other in (truth, losses)
            ]
            title = _TITLES.get(name, "TV to the truth, its examples")
            lines.append((f"{row['examples']:,}", title, *shown))
    titles = (
        "examples",
        "of the teacher",
        "rank correlation with TV to the truth, ± 2 standard errors",
        "with the student's NLL",
    )
    return table(titles, lines, (1,))


def smoothness(rows: Sequence[Row]) -> str:
    """Returns measured constants of Definitions 4 and 5 beside errors."""
    lines = []
    for row in rows:
        for arm, found in row["arms"].items():
            if "smoothness" not in found:
                continue
            lines.append(
                (
                    f"{row['examples']:,}",
                    arm,
                    with_deviation(found["smoothness"]["lipschitz_x"]),
                    with_deviation(found["smoothness"]["robustness"]),
                    with_deviation(found["smoothness"]["spread"], 3),
                    with_deviation(found["smoothness"]["distance"], 3),
                    f"{100 * np.mean(found['smoothness']['within']):.0f}",
                    with_deviation(found["teacher"]["tv"], 3),
                )
            )
    titles = (
        "examples",
        "teacher",
        "L_X",
        "L_Gamma",
        "L_z, of predictions",
        "distance to the mean label",
        "features where it is at most L_z, %",
        "TV to the truth",
    )
    return table(titles, lines, (1,))


def checkpoints(rows: Sequence[Row]) -> str:
    """Returns students of the checkpoints of two teachers."""
    row = rows[0]
    lines = [
        (
            f"{100 * (index + 1) // len(own)} %",
            *(
                text
                for arm in row["curves"]
                for text in (
                    f"{row['curves'][arm][index]['tv']:.3f}",
                    f"{100 * row['curves'][arm][index]['teacher_accuracy']:.1f}",
                    f"{100 * row['curves'][arm][index]['accuracy']:.1f}",
                    f"{row['curves'][arm][index]['nll']:.4f}",
                )
            ),
        )
        for own in [next(iter(row["curves"].values()))]
        for index in range(len(own))
    ]
    titles = ["epochs of the teacher"]
    for arm in row["curves"]:
        titles += [f"{arm}: TV", "accuracy, %", "of its student", "NLL of its student"]
    return table(titles, lines)


def sweep(rows: Sequence[Row]) -> str:
    """Returns teachers and students by weight and schedule."""
    lines = []
    for name, cells in rows[0]["sweep"].items():
        base = cells[0]
        for cell in cells:
            pairs = list(zip(cell["student_nll"], base["student_nll"], strict=True))
            lines.append(
                (
                    name,
                    cell["value"],
                    f"{np.mean(cell['tv']):.3f}",
                    f"{100 * np.mean(cell['teacher']):.1f}",
                    f"{100 * np.mean(cell['student']):.1f}",
                    f"{np.mean(cell['student_nll']):.4f}",
                    "" if cell is base else paired_difference(pairs, 4),
                )
            )
    titles = (
        "of",
        "value",
        "TV to the truth",
        "teacher, accuracy, %",
        "student, accuracy, %",
        "student, NLL",
        "less the first, ± 2 standard errors",
    )
    return table(titles, lines, (0, 1))


def noise(rows: Sequence[Row]) -> str:
    """Returns errors beside the numbers that Theorem 3 bounds them by."""
    lines = [
        (
            f"{cell['noise']:g}",
            cell["arm"],
            with_deviation(cell["variance"]),
            with_deviation(cell["lipschitz_x"]),
            with_deviation(cell["robustness"]),
            with_deviation(cell["tv"], 3),
        )
        for cell in rows[0]["noise"]
    ]
    titles = (
        "deviation of patches",
        "teacher",
        "v",
        "L_X",
        "L_Gamma",
        "TV to the truth",
    )
    return table(titles, lines, (1,))


def sizes(row: Row) -> str:
    """Returns how labels deviate from their distributions, by features and patches."""
    lines = []
    for each in row["lemma_4_sizes"]:
        share = SIZES_COUNT * each["patches"] / each["features"]
        inverse = SIZES_COUNT * each["features"] / each["patches"]
        lines.append(
            (
                each["features"],
                each["patches"],
                f"{each['mean']:.4f}",
                f"{each['mean'] * share**0.5:.2f}",
                f"{each['printed']:.4f}",
                f"{each['printed'] * inverse**0.5:.2f}",
                f"{each['tv']:.4f}",
            )
        )
    titles = (
        "features",
        "patches",
        "L1 of a feature's mean label to the mean distribution",
        "times the root of N M / Z",
        "as printed, over N",
        "times the root of N Z / M",
        "TV of predictions",
    )
    return table(titles, lines)


def lemmas(row: Row) -> tuple[str, str]:
    """Returns the numbers of Lemmas 4 and 5, and of Theorem 2."""
    errors = {each["examples"]: each["tv"] for each in row["theorem_2"]}
    lines = [
        (
            f"{each['examples']:,}",
            f"{each['distance']:.4f}",
            f"{each['distance'] * each['examples'] ** 0.5:.2f}",
            f"{errors[each['examples']]:.4f}",
        )
        for each in row["lemma_4"]
    ]
    lines.append(("all there are", "0", "", f"{errors[0]:.4f}"))
    convergence = table(
        (
            "examples",
            "L1 of a feature's prediction to its limit",
            "times the root of N",
            "TV of predictions to the truth",
        ),
        lines,
    )
    residual = table(
        (
            "features",
            "patches",
            "independent",
            "as printed, over N",
            "in topics",
            "TV of predictions, independent",
            "in topics",
        ),
        [
            (
                each["features"],
                each["patches"],
                f"{each['independent']:.3f}",
                f"{each['printed']:.3f}",
                f"{each['together']:.3f}",
                *(
                    f"{each[name]:.3f}" if name in each else ""
                    for name in ("independent_tv", "together_tv")
                ),
            )
            for each in row["lemma_5"]
        ],
    )
    return convergence, residual

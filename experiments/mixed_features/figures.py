"""The figures of teachers where the truth is known."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save

Row = Mapping[str, Any]
_COLOURS = {"standard": "#4c4c4c", "soteacher": "#0072b2"}
_MARKS = ("o", "s", "^", "D", "v", "P", "X")


def draw_all(rows: Sequence[Row], folder: pathlib.Path) -> None:
    """Draws the figures of what there is."""
    for row in rows:
        if row["stage"] == "checkpoints":
            draw_checkpoints(row, folder / "checkpoints.png")
        elif row["stage"] == "sweep":
            draw_sweep(row, folder / "sweep.png")
        elif row["stage"] == "noise":
            draw_noise(row, folder / "noise.png")
        elif row["stage"] == "lemmas":
            draw_lemmas(row, folder / "lemmas.png")
    arms = [row for row in rows if row["stage"] == "arms"]
    if arms:
        arms.sort(key=lambda row: row["examples"])
        draw_arms(arms, folder / "truth.png")


def draw_checkpoints(row: Row, path: pathlib.Path) -> None:
    """Draws students of a teacher's checkpoints (Figure 2.1)."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    names = {
        "teacher_accuracy": "accuracy of the teacher, test",
        "tv": "TV of the teacher to the truth",
        "nll": "NLL of the student, test",
        "accuracy": "accuracy of the student, test",
    }
    for arm, points in row["curves"].items():
        x = 100 * np.arange(1, len(points) + 1) / len(points)
        for panel, (name, title) in zip(axes, names.items(), strict=True):
            values = [point[name] for point in points]
            panel.plot(x, values, "o-", color=_COLOURS[arm], label=arm)
            panel.set(title=title, xlabel="% of the teacher's epochs")
    axes[0].legend()
    save(figure, path)


def draw_sweep(row: Row, path: pathlib.Path) -> None:
    """Draws accuracies by weight and schedule (Figure 2.2)."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for panel, (name, cells) in zip(axes, row["sweep"].items(), strict=True):
        labels = [str(cell["value"]) for cell in cells]
        for role, colour in (("teacher", "#d55e00"), ("student", "#0072b2")):
            means = [100 * np.mean(cell[role]) for cell in cells]
            panel.plot(range(len(cells)), means, "o-", color=colour, label=role)
        panel.set(title=name, ylabel="accuracy, %, test")
        panel.set_xticks(range(len(cells)), labels)
    axes[0].legend()
    save(figure, path)


def draw_noise(row: Row, path: pathlib.Path) -> None:
    """Draws errors against what Theorem 3 bounds them by."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    names = {
        "variance": "v, variance of a feature's patches",
        "lipschitz_x": "L_X of the features",
        "robustness": "L_Gamma of the features",
    }
    for arm, colour in _COLOURS.items():
        cells = [cell for cell in row["noise"] if cell["arm"] == arm]
        errors = [np.mean(cell["tv"]) for cell in cells]
        for panel, (name, title) in zip(axes, names.items(), strict=True):
            x = [np.mean(cell[name]) for cell in cells]
            panel.plot(x, errors, "o-", color=colour, label=arm)
            panel.set(xlabel=title, ylabel="TV to the truth")
    axes[0].legend()
    save(figure, path)


def draw_arms(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws the student's loss against the teacher's distance to the truth."""
    figure, axes = plt.subplots(
        1, len(rows), figsize=(4 * len(rows), 3.6), layout="constrained", squeeze=False
    )
    for panel, row in zip(axes[0], rows, strict=True):
        arms = [arm for arm, found in row["arms"].items() if "teacher" in found]
        for arm, mark in zip(arms, _MARKS, strict=True):
            found = row["arms"][arm]
            panel.plot(
                np.mean(found["teacher"]["tv"]),
                np.mean(found["student"]["nll"]),
                mark,
                label=arm,
            )
        alone = np.mean(row["arms"]["none"]["student"]["nll"])
        panel.axhline(float(alone), color="#999999", linestyle=":", label="no teacher")
        panel.set(
            title=f"{row['examples']:,} examples",
            xlabel="TV of the teacher to the truth",
            ylabel="NLL of the student, test",
        )
    axes[0][0].legend(fontsize=7)
    save(figure, path)


def draw_lemmas(row: Row, path: pathlib.Path) -> None:
    """Draws Lemma 4 and Theorem 2 against N, and Lemma 5 against features."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    counts = [each["examples"] for each in row["lemma_4"]]
    axes[0].loglog(
        counts,
        [each["distance"] for each in row["lemma_4"]],
        "o-",
        label="L1 of a feature's prediction to its limit",
    )
    errors = [each for each in row["theorem_2"] if each["examples"]]
    axes[0].loglog(counts, [each["tv"] for each in errors], "s-", label="TV to truth")
    limit = next(e["tv"] for e in row["theorem_2"] if not e["examples"])
    axes[0].axhline(limit, color="#999999", linestyle=":", label="TV, all data")
    axes[0].set(xlabel="examples")
    axes[0].legend(fontsize=7)
    for name, title in (
        ("independent", "independent"),
        ("printed", "independent, as printed"),
        ("together", "in topics"),
    ):
        own = [each for each in row["lemma_5"] if each["patches"] == 2]
        x = [each["features"] for each in own]
        axes[1].plot(x, [each[name] for each in own], "o-", label=title)
    axes[1].set(xlabel="features, two patches", ylabel="L1 to p_Y of a feature")
    axes[1].legend(fontsize=7)
    save(figure, path)

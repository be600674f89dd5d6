"""The study `mi_text`: what its parts estimate, and means of seeds."""

from __future__ import annotations

import dataclasses

from experiments.mi_text import estimating
from experiments.mi_text import report as text_report
from experiments.mi_text.config import PARTS as TEXT_PARTS
from experiments.mi_text.config import PRESETS as TEXT
from rlm_tf.evaluation import SegmentInformation
from rlm_tf.evaluation.information.segment_information import estimate


def test_parts_of_mi_text_estimate_what_they_say(tmp_path, monkeypatch):
    asked = []

    def estimates(jobs, streams, folder, **options):
        longer = options.get("most_steps", 0) > 50
        folds = [0.5, 0.7] if longer else [0.4, 0.5]
        found = SegmentInformation(
            estimate(folds), estimate(folds), estimate(folds), 9.0, 10, [50], 0.0, 1
        )
        for job in jobs:
            length = len(streams.tokens[job.text])
            asked.append((job, length, options["critic"], options["computed"], folder))
            yield job, found

    monkeypatch.setattr(estimating, "estimates", estimates)
    config = dataclasses.replace(
        TEXT["smoke"],
        corpora=("python-docs", "python-docs"),
        most_tokens=500,
        gaps_of=(0, 3),
        critics_of=("separable", "mlp"),
        lengths_of=(300,),
        steps_dropouts=(0.0, 0.5),
    )
    rows = {
        part: getattr(estimating, part)(config, tmp_path / part)["rows"]
        for part in TEXT_PARTS
    }
    assert {part: len(found) for part, found in rows.items()} == {
        "real": 2,
        "gaps": 4,
        "critics": 4,
        "lengths": 4,
        "controls": 4,
        "steps": 4,
        "seed_1": 12,
        "seed_2": 12,
        "far": 4,
        "far_1": 4,
        "far_2": 4,
    }
    assert [row["gap"] for row in rows["gaps"]] == [0, 3, 0, 3]
    assert [row["critic"] for row in rows["critics"]] == 2 * ["separable"] + 2 * ["mlp"]
    assert [row["tokens"] for row in rows["lengths"]] == [300, 300, 500, 500]
    kinds = [row["shuffled_order"] for row in rows["controls"]]
    assert kinds == 2 * ["words", "sentences"]
    assert all("shuffled" in row for row in rows["real"] + rows["gaps"])
    # No two estimates share the file of their folds.
    assert len({folder / job.file for job, *_, folder in asked}) == len(asked) == 58
    critics = [critic for *_, critic, _, folder in asked if "critics" in str(folder)]
    assert critics == ["separable", "separable", "mlp", "mlp"]
    assert {computed for *_, computed, _ in asked} == {2}
    assert {row["seed"] for row in rows["seed_1"]} == {1}
    assert {row["seed"] for row in rows["far_2"]} == {2}
    assert {row["most_steps"] for row in rows["far"]} == {100}
    assert [row["part"] for row in rows["seed_2"]] == [
        part for part in ("gaps", "lengths", "controls") for _ in range(4)
    ]
    report = text_report.report(
        {part: {"rows": found} for part, found in rows.items()}, tmp_path
    )
    assert report.count("| --- |") == 7
    # Fold by fold: 0.1 and 0.2 more than the same folds of `real`.
    assert "| python-docs | 4,000 | 0 | 2 | 0.450 ± 0.050 |  |  |" in report
    shown = "| 100 | 0 | 2 | 0.600 ± 0.100 | +0.150 ± 0.100 | 1 of 2 |"
    assert shown in report
    assert (tmp_path / "mi_text_gaps.png").stat().st_size > 5000


def test_folds_of_mi_text_are_means_of_seeds():
    def row(text, first, **more):
        found = estimate([first, first + 0.2])._asdict()
        return {"text": text, "gap": 0, "tokens": 9, "mine": found, "nwj": found} | more

    once = {"gaps": {"rows": [row("a", 0.0), row("b", 1.0)]}}
    # Nothing is bold of one seed.
    line = "| 0 | 0.100 ± 0.100 | 1.100 ± 0.100 | 0.100 ± 0.100 | 1.100 ± 0.100 | "
    assert line + "+1.000 ± 0.283 | one seed |" in text_report.tables(once)["gaps"]
    others = [
        row(text, first, part="gaps", seed=seed)
        for text, seed, first in (
            ("a", 1, 0.3),
            ("a", 2, 0.3),
            ("b", 1, 1),
            ("b", 2, 1),
        )
    ]
    several = dict(once)
    for seed in (1, 2):
        own = [row for row in others if row["seed"] == seed]
        several[f"seed_{seed}"] = {"rows": own}
    line = "| 0 | 0.300 ± 0.100 | 1.100 ± 0.100 | 0.300 ± 0.100 | 1.100 ± 0.100 | "
    found = text_report.tables(several)["gaps"]
    assert line + "**+0.800 ± 0.283** | 0.173 |" in found

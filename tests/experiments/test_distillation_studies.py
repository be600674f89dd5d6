"""The studies of teachers: known truth, rows and tables, each binary end to end."""

from __future__ import annotations

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.distill_digits import fitting, projecting
from experiments.distill_digits import report as digits_report
from experiments.distill_digits.config import METHODS, NETWORKS, SETS, TEACHERS
from experiments.distill_digits.config import PRESETS as DIGITS
from experiments.distill_digits.data import drawn as drawn_digits
from experiments.distill_digits.running import runs_of as digits_runs
from experiments.distill_language import report as language_report
from experiments.distill_language.config import PRESETS as LANGUAGE
from experiments.distill_language.language_run import LanguageRun, places_of
from experiments.distill_language.lumps import lump_errors
from experiments.distill_language.running import runs_of as language_runs
from experiments.mixed_features.config import PRESETS as MIXED
from rlm_tf.distillation.recipes import RECIPES
from rlm_tf.evaluation import TokenFidelity
from rlm_tf.objectives.distillation import kd
from tests.experiments.binaries import run_binary
from tests.models.imm import imm_fixtures as fixtures

_CONFIG = dataclasses.replace(
    MIXED["smoke"], instances=3, epochs=4, units=5, checkpoints=2
)


_STORED = ("predictions", "dynamic-predictions")

# === mixed_features ===


def test_every_recipe_is_a_method():
    """`config` names them itself, as flags are read without TensorFlow."""
    others = {"alone", "rco", "calibrated"}
    assert others | set(RECIPES) == set(METHODS)
    assert len(METHODS) == len(RECIPES) + len(others)


def test_digits_of_a_seed_are_parts_of_all():
    parts = drawn_digits(DIGITS["small"], 1)
    assert [len(part.labels) for part in parts[:3]] == [300, 200, 1297]
    other = drawn_digits(DIGITS["small"], 2)
    assert not np.array_equal(parts.train.labels, other.train.labels)
    read = [x.numpy() for x, _ in parts.dataset("test", 256)]
    x = np.concatenate(read)
    assert x.shape == (1297, 8, 8, 1) and x.max() == 1 and len(read) == 6
    np.testing.assert_array_equal(x * 255, parts.test.images)
    with pytest.raises(ValueError, match="more than the 1797 images of digits"):
        drawn_digits(dataclasses.replace(DIGITS["small"], examples=1597), 1)


def test_a_rate_that_falls_counts_at_once():
    """A velocity of gradients alone, times the rate of now, as PyTorch has it."""
    variable = keras.Variable([1.0, -2.0])
    rates = keras.optimizers.schedules.PiecewiseConstantDecay([2], [0.1, 0.01])
    optimizer = fitting.Momentum(rates, momentum=0.9)
    expected, velocity = np.array([1.0, -2.0]), np.zeros(2)
    for step in range(5):
        gradient = np.array([0.5, step], np.float32)
        optimizer.apply([gradient], [variable])
        velocity = 0.9 * velocity + gradient
        expected -= float(rates(step)) * velocity
        np.testing.assert_allclose(variable, expected, rtol=1e-5)


def test_students_may_have_a_rate_of_their_own():
    config = DIGITS["paper-shufflenet"]
    teacher, student = (
        fitting.optimizer(config, 3, is_student=own).learning_rate
        for own in (False, True)
    )
    assert float(teacher) == pytest.approx(0.05)
    assert float(student) == pytest.approx(0.01)
    own = fitting.optimizer(DIGITS["small"], 3, is_student=True).learning_rate
    assert float(own) == pytest.approx(0.05)


def test_images_of_folders_are_read_as_they_are_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("RLM_DATA_DIR", str(tmp_path))
    for split, number in (("train", 5), ("val", 2)):
        for row in range(number):
            place = tmp_path / "imagenet" / split / f"n{row % 2}"
            place.mkdir(parents=True, exist_ok=True)
            image = np.full([9, 12, 3], 40 * row, np.uint8)
            (place / f"{row}.png").write_bytes(tf.io.encode_png(image).numpy())
    config = dataclasses.replace(
        DIGITS["paper-imagenet"], examples=3, held_out=2, batch_size=2
    )
    parts = drawn_digits(config, 1)
    assert [len(part.labels) for part in parts[:3]] == [3, 2, 2]
    ((x, ids), labels), _ = parts.batches(config, 1).dataset.take(2)
    assert x.shape == (2, 224, 224, 3) and len(ids) == len(labels) == 2
    np.testing.assert_array_equal(parts.labels("test"), [0, 1])
    with pytest.raises(ValueError, match=r"images of files are not mixed \(mixup\)"):
        parts.batches(config, 1, "mixup")


@pytest.mark.landing
@pytest.mark.parametrize(
    "preset", ["paper", "paper-tiny", "paper-shufflenet", "paper-methods"]
)
def test_hours_of_the_published_schedules(preset, monkeypatch):
    config = DIGITS[preset]
    tiny = {name: {"depth": 10, "widen": 1} for name in NETWORKS}
    monkeypatch.setattr(fitting, "NETWORKS", tiny)
    # Of many methods those whose steps need more than features.
    few = [each for each in config.methods if each in ("alone", "kd", "crd", "rco")]
    config = dataclasses.replace(
        config, batch_size=2, project_steps=1, methods=tuple(few)
    )
    (run,) = digits_runs(config, [1])
    assert run.name == "-".join(("project", config.data, *config.networks))
    found = projecting.project(config, 1)
    student = f"{config.networks[0]}, {config.methods[-1]}"
    epochs = config.epochs + (10 if preset == "paper-tiny" else 0)
    steps = -(-config.examples // 2) * epochs
    expected = steps * found["step_seconds"][student] / 3600
    assert found["hours"][student] == pytest.approx(expected)
    row = {"name": "project", "role": "projected", "data": config.data, **found}
    table = digits_report.tables([row])["projected"]
    of = f"teacher {config.teacher_network}, soteacher-authors"
    assert f"| {config.data} | {of} |" in table


@pytest.mark.parametrize("name", ["shufflenet-v2", "resnet18", "resnet32x4"])
@pytest.mark.landing
def test_networks_have_the_classes_of_their_images(name):
    for data in ("cifar100", "imagenet"):
        network = fitting.network(name, 1, data)
        assert network.output_shape == (None, SETS[data].classes)


def test_runs_are_teachers_and_then_their_students():
    names = [run.name for run in digits_runs(DIGITS["small"], [1])]
    assert names[0] == "teacher-standard-wrn-16-2-seed1" and len(names) == 11
    assert names[5] == "wrn-16-1-alone-seed1"
    assert names[-1] == "wrn-16-1-kd-of-soteacher-authors-wrn-16-2-seed1"
    names = [run.name for run in digits_runs(DIGITS["methods"], [1])]
    assert len(names) == 14 and not any(name.startswith("teacher") for name in names)
    config = dataclasses.replace(
        DIGITS["methods"], teachers=("cross-fitted",), methods=("kd", "at")
    )
    assert [run.name for run in digits_runs(config, [1])] == [
        "wrn-16-1-kd-of-cross-fitted-wrn-16-2-seed1"
    ]
    # What a run is does not depend on the list that it is in.
    small, alone = (
        digits_runs(config, [1])[0].settings
        for config in (
            DIGITS["small"],
            dataclasses.replace(DIGITS["small"], methods=("alone",)),
        )
    )
    assert small == alone


def _row(role, teacher, method, network, seed, accuracy):
    scores = {"accuracy": accuracy, "nll": 0.3, "ece": 0.05, "brier": 0.1}
    return {
        "name": f"{role}-{teacher}-{method}-{network}-{seed}",
        "role": role,
        "teacher": teacher,
        "method": method,
        "network": network,
        "teacher_network": "wrn-16-2" if method not in ("", "alone") else "",
        "seed": seed,
        "data": "digits",
        "test": scores,
        "scaled": scores,
        "temperature": 1.5,
        "seconds": 10.0,
        "fidelity": {"agreement": 0.9, "divergence": 0.1},
    }


def test_tables_of_digits(tmp_path):
    rows = []
    for seed, alone in enumerate((0.9, 0.92, 0.91), start=1):
        rows.append(_row("student", "", "alone", "wrn-16-1", seed, alone))
        for arm, more in (("standard", 0.02), ("soteacher-authors", 0.03)):
            rows.append(_row("teacher", arm, "", "wrn-16-2", seed, 0.95))
            rows.append(_row("student", arm, "kd", "wrn-16-1", seed, alone + more))
            rows.append(_row("student", arm, "at", "wrn-16-1", seed, alone + 0.01))
    found = digits_report.tables(rows)
    assert set(found) == {"students", "fidelity", "uncertainty", "methods"}
    lines = found["students"].splitlines()
    assert lines[2].startswith("| wrn-16-1 | none | 3 |  | 91.00 ± 1.00 | **-2.00 ± 0")
    assert "| soteacher-authors | 3 | 95.00 ± 0.00 | 94.00 ± 1.00 | **+1.00" in lines[4]
    assert "| at | 3 | 92.00 ± 1.00 | 92.00 ± 1.00 | +0.00 ± 0.00 |" in found["methods"]
    digits_report.report(rows, tmp_path)
    assert (tmp_path / "students.png").exists()
    # Beside other images stand their own numbers.
    tiny = [
        {
            **row,
            "data": "tiny-imagenet",
            "network": "resnet34" if row["role"] == "teacher" else "resnet18",
            "teacher_network": "resnet34" if row["teacher_network"] else "",
            "test": {**row["test"], "top5": 0.85},
        }
        for row in rows
    ]
    # Rows of both at once: each set has its own tables.
    both = digits_report.tables([*rows, *tiny])
    assert {name: both[name] for name in found} == found
    assert "| 71.33 ± 0.07 |" in both["tiny-imagenet-fidelity"]
    assert "| 0.107 / 1.601 / 0.043 / 1.574 |" in both["tiny-imagenet-uncertainty"]
    assert "| 76.16 ± 0.14 |" in found["fidelity"]
    lines = digits_report.tables(tiny)["tiny-imagenet-students"].splitlines()
    assert lines[3].endswith(
        "| 64.94 ± 0.32 | 66.19 ± 0.17 | 85.00 ± 0.00 | 85.00 ± 0.00 | 84.33 ± 0.40 "
        "| 85.74 ± 0.21 |"
    )
    assert "64.94" not in found["students"] and "76.38" in found["students"]


# === distill_language ===


def test_students_learn_from_the_models_behind_them(tmp_path):
    names = [run.name for run in language_runs(LANGUAGE["small"], [1, 2])]
    assert names[:3] == ["kneser-ney-5-seed1", "none-seed1", "none-seed2"]
    assert names[-1] == "ensemble-of-5-seed2" and len(set(names)) == len(names)
    # Who teaches comes first, and each but once.
    for student, teachers in (
        ("of-1-seed2", ["none-seed3"]),
        ("of-soteacher-seed1", ["soteacher-seed2"]),
        ("of-5-seed2", [f"none-seed{seed}" for seed in range(3, 8)]),
    ):
        assert max(map(names.index, teachers)) < names.index(student)
    assert len([name for name in names if name.startswith("none")]) == 7
    names = [run.name for run in language_runs(LANGUAGE["trials"], [9])]
    assert names[1] == "of-1-t1-w0.9-10epochs-seed9" and len(names) == 4
    run = LanguageRun(LANGUAGE["small"], "of-5", 1.0, 0.5, 2)
    places = places_of(run, tmp_path / run.name)
    assert [place.name for place in places] == [f"none-seed{n}" for n in range(3, 8)]
    run = run._replace(arm="of-soteacher")
    (place,) = places_of(run, tmp_path / run.name)
    assert place == tmp_path / "soteacher-seed3"


def test_tables_of_language(tmp_path):
    rows = []
    for seed, base in enumerate((200.0, 204.0, 202.0), start=1):
        for arm, more in (("none", 0.0), ("of-5", -5.0)):
            rows.append(
                {
                    "name": f"{arm}-{seed}",
                    "arm": arm,
                    "stage": "main",
                    "seed": seed,
                    "test": base + more,
                    "mixed_test": base / 2,
                    "parameters": 2_000_000,
                    "seconds": 100.0,
                }
            )
    part = TokenFidelity(10, 5.0, 5.1, 0.01, 0.02, 0.5, 0.3)._asdict()
    rows[-1]["fidelity"] = [part] * 5
    trial = {"valid": 210.0, "mixed_valid": 150.0, "temperature": 1.0, "weight": 0.5}
    rows.append({**rows[1], **trial, "stage": "trials"})
    found = language_report.tables(rows)
    assert set(found) == {"arms", "fidelity", "trials"}
    lines = found["arms"].splitlines()
    pair = {"of-5-imm": -6.0, "of-5": -5.0}
    both = language_report.tables(
        [
            {**row, "arm": arm, "test": row["test"] + more}
            for row in rows[:6:2]
            for arm, more in pair.items()
        ]
    )["arms"]
    assert "| `of-5`: **-1.0 ± 0.0** | `of-5`: +0.0 ± 0.0 |" in both
    assert lines[3].startswith("| of-5 | 3 | 197.0 ± 2.0 | **-5.0 ± 0.0** | 101.0")
    assert "| of-5 | rarest quarter | 5.000 | 5.100 |" in found["fidelity"]
    rows[0]["fidelity"] = [part] * 5
    alone = language_report.tables(rows)["fidelity"].splitlines()[2]
    assert alone == "| none | all |  | 5.100 |  | 0.020 |  |  |"
    language_report.report(rows, tmp_path)
    assert (tmp_path / "arms.png").exists()


def test_errors_of_stored_words():
    teacher, student = (fixtures.language_model(seed=seed) for seed in (8, 9))
    text = fixtures.stream()
    found = lump_errors(teacher, student, text, 2.0)
    size = fixtures.VOCABULARY
    assert [each["k"] for each in found] == [k for k in (1, 4, 16) if k < size]
    rows = text[: len(text) // 100 * 100].reshape(-1, 100)
    pair = [tf.reshape(model(rows), [-1, size]) for model in (teacher, student)]
    expected = np.mean(kd(*pair, temperature=2.0).loss)
    for each in found:
        assert each["kd"] == pytest.approx(expected, rel=1e-5)
        assert 0 < each["lumped"] < each["kd"] and 0 < each["mass"] < 1
    for name, sign in (("lumped", 1), ("mass", 1), ("gradient", -1)):
        values = [sign * each[name] for each in found]
        assert values == sorted(values) and len(set(values)) == len(values)
    row = {"lumps": [{**each, "lumped": 0.9 * each["kd"]} for each in found]}
    assert "| 4 | 1 |" in language_report.lumps([row])
    assert "| 10.0 |" in language_report.lumps([row])


@pytest.mark.landing
@pytest.mark.slow
def test_language_from_end_to_end(tmp_path):
    flags = ("--preset=smoke", f"--output_dir={tmp_path}")
    chosen = (
        *("kneser-ney-5", "of-1", "of-soteacher", "of-5-folds", "of-5-dynamic"),
        *("of-5-imm", "half-of-5", "ensemble-of-5", "of-1-dropout", "on-policy"),
    )
    arms = f"--arms={','.join(chosen)}"
    missing = run_binary("distill_language", *flags, "--arms=of-1", "--stage=trials")
    assert "run with --arms=none --seeds=2 first" in missing.stderr
    # In two parts: one binary has ten minutes, also on a slow machine.
    first = f"--arms={','.join(chosen[:5])}"
    run_binary("distill_language", *flags, first, check=True)
    printed = run_binary("distill_language", *flags, arms, check=True).stdout
    assert "| of-5-folds | 1 |" in printed and "| of-5-dynamic | 1 |" in printed
    assert "| on-policy | all |" in printed and "wrong in the gradient" in printed
    folds = tmp_path / "folds"
    stored = [np.load(folds / p / "log_probs.npy") for p in _STORED]
    assert stored[0].shape == stored[1].shape and not np.allclose(*stored)
    again = run_binary("distill_language", *flags, arms, check=True).stdout
    # With five plain models and one student-oriented teacher.
    assert again.count("done before") == len(chosen) + 6
    # N-grams teach at other temperatures, too.
    other = ("--arms=of-n-gram", "--temperatures=2", "--stage=trials")
    run_binary("distill_language", *flags, *other, check=True)


def test_mistakes():
    with pytest.raises(ValueError, match="--methods must be some of"):
        dataclasses.replace(DIGITS["small"], methods=("fsp",)).check()
    with pytest.raises(ValueError, match="--rate must be positive"):
        dataclasses.replace(DIGITS["small"], rate=0.0).check()
    with pytest.raises(ValueError, match="--stages must be some of"):
        dataclasses.replace(MIXED["small"], stages=("all",)).check()
    with pytest.raises(ValueError, match="--folds must be at least 2"):
        dataclasses.replace(MIXED["small"], folds=1).check()
    with pytest.raises(ValueError, match="--weights must lie in"):
        dataclasses.replace(LANGUAGE["small"], weights=(1.5,)).check()
    with pytest.raises(ValueError, match="--k must be at least 1"):
        dataclasses.replace(LANGUAGE["small"], k=0).check()
    for preset in (*DIGITS.values(), *MIXED.values(), *LANGUAGE.values()):
        preset.check()
    assert set(DIGITS["small"].teachers) <= set(TEACHERS)


@pytest.mark.landing
@pytest.mark.slow
def test_digits_from_end_to_end(tmp_path):
    flags = ("--preset=smoke", f"--output_dir={tmp_path}")
    printed = run_binary("distill_digits", *flags, check=True).stdout
    assert "| wrn-10-1 | soteacher-authors | 1 |" in printed
    lines = (tmp_path / "results" / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line)["row"] for line in lines]
    assert [row["method"] for row in rows] == ["", *DIGITS["smoke"].methods]
    again = run_binary("distill_digits", *flags, check=True).stdout
    assert again.count("done before") == len(rows)
    kinds = "--teachers=early-stopped,mixup,crl,cross-fitted"
    run_binary("distill_digits", *flags, kinds, "--methods=kd", check=True)
    missing = run_binary("distill_digits", *flags, "--notrain_teachers", "--seeds=2")
    assert "trains teachers, whose files are in the same --output_dir" in missing.stderr

"""`rlm_tf train`: kills, minutes, several models, and what learns from its folder."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import load_model
from rlm_tf.commands import settings, using
from rlm_tf.commands.distillation import running as distilling
from rlm_tf.commands.distillation.settings import (
    DistilSettings,
    check_distil_settings,
)
from rlm_tf.commands.model_folder import load_folder
from rlm_tf.commands.training import fitting, reading, running
from rlm_tf.data.text.python_docs import python_docs
from rlm_tf.evaluation import interpolate, restricted_target_log_probs, target_log_probs

pytestmark = [pytest.mark.slow, pytest.mark.landing]


def test_the_served_mixture_needs_a_bare_process(trained):
    program = """
import sys
import tensorflow as tf
import tensorflow_text
served = tf.saved_model.load(sys.argv[1])
answer = served.signatures["score"](texts=tf.constant(["the value of a name"]))
assert not {"rlm_tf", "keras_hub", "sentencepiece"} & set(sys.modules)
print(answer["total"].numpy()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(trained / "saved_model")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = load_folder(str(trained), "test")
    ids, eos = found.vocabulary.encode("the value of a name"), found.vocabulary.eos_id
    ids = ids[ids != eos]
    log_p = restricted_target_log_probs(found.n_gram, ids, prefix=eos)
    log_q = target_log_probs(
        found.model, ids, 1, 35, prefix=eos, temperature=found.temperature
    )
    mixed = interpolate(log_q, log_p, found.mu)
    assert float(done.stdout) == pytest.approx(mixed.sum(), rel=1e-4)


def test_the_n_gram_can_be_served_alone(trained, tmp_path, capsys):
    options = settings.ExportSettings(
        model=str(trained), output_dir=str(tmp_path / "x"), n_gram=True
    )
    using.export(options)
    assert "the n-gram alone" in capsys.readouterr().out
    loaded = tf.saved_model.load(str(tmp_path / "x"))
    found = load_folder(str(trained), "test")
    ids = found.vocabulary.encode("The object\u9f98")
    expected = restricted_target_log_probs(
        found.n_gram, ids, prefix=found.vocabulary.eos_id
    )
    answer = loaded.score(tf.constant(["The object\u9f98"]))
    np.testing.assert_allclose(answer["log_probs"][0], expected, atol=1e-4)


def test_export_writes_the_model_alone_on_demand(trained, tmp_path, capsys):
    path = tmp_path / "small"
    options = settings.ExportSettings(
        model=str(trained), output_dir=str(path), mixture=False
    )
    using.export(options)
    assert "the model alone" in capsys.readouterr().out
    with pytest.raises(FileExistsError):
        using.export(options)
    served = (trained / "saved_model" / "variables").glob("*.data*")
    alone = (path / "variables").glob("*.data*")
    sizes = [sum(file.stat().st_size for file in files) for files in (alone, served)]
    assert sizes[0] < sizes[1] / 2


@pytest.mark.parametrize("ensemble", [1, 2])
def test_minutes_and_text_that_is_only_counted(
    small, trained, tmp_path, capsys, monkeypatch, ensemble
):
    more = tmp_path / "more.txt"
    more.write_text(python_docs()["valid"][:40_000])
    folder = tmp_path / "counted"
    given = dataclasses.replace(
        small,
        output_dir=str(folder),
        count_text=str(more),
        mixture=False,
        epochs=None,
        minutes=0.5,
        width=None,
        dropouts=None,
        dynamic=False,
        ensemble=ensemble,
    )
    if ensemble > 1:
        _run_killed_before_the_second(given, monkeypatch)
        assert not (folder / "results.json").exists()
    running.run(given)
    shown = capsys.readouterr().out
    assert "min left" in shown and "training ended" in shown
    assert shown.count("trained before") == ensemble - 1
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["imm"] and plan["seconds"] > 0
    assert (plan["restricted_order"], plan["coefficient"]) == (5, 0.5)
    found = json.loads((folder / "results.json").read_text())
    assert found["mixture"]["mu"] is None
    assert found["training"]["seconds"] < 60
    assert len(found["training"].get("models", [1])) == ensemble
    # What is counted too makes the n-gram better than that of the text alone.
    own = json.loads((trained / "results.json").read_text())
    perplexity = [
        results["scores"]["n-gram"]["test"]["perplexity"] for results in (found, own)
    ]
    assert perplexity[0] < perplexity[1]
    assert load_folder(str(folder), "test").mixture is None
    assert "bits per byte of the test text" in (folder / "report.md").read_text()


def test_several_models_are_trained_and_their_mean_is_served(
    small, trained, tmp_path, capsys, monkeypatch
):
    given = dataclasses.replace(small, output_dir=str(tmp_path / "mean"), ensemble=2)
    folder = tmp_path / "mean"
    _run_killed_before_the_second(given, monkeypatch)
    assert not (folder / "results.json").exists()
    running.run(given)
    shown = capsys.readouterr().out
    assert "ensemble: 2 models, of seeds 1 to 2" in shown
    assert "trained before: 2 epochs" in shown
    found = load_folder(str(folder), "test")
    scores = {name: row["test"] for name, row in found.results["scores"].items()}
    assert [each["seed"] for each in found.results["training"]["models"]] == [1, 2]
    # The first is what the same command without --ensemble trains.
    alone = json.loads((trained / "results.json").read_text())["scores"]
    for name in ("model", "mixture"):
        first = scores["first model" + (", mixture" if name == "mixture" else "")]
        assert first == pytest.approx(alone[name]["test"], rel=1e-6)
    test = found.vocabulary.encode(reading.read_texts(given).splits["test"])
    eos = found.vocabulary.eos_id
    each = [
        target_log_probs(model, test, 1, 35, prefix=eos) for model in found.model.models
    ]
    nats = -np.mean(np.logaddexp(*each) - np.log(2))
    assert scores["model"]["nats_per_token"] == pytest.approx(nats, rel=1e-5)
    assert nats < np.mean([-one.mean() for one in each])
    using.generate(
        settings.GenerateSettings(
            model=str(folder), prompt="The object", max_tokens=5, temperature=0.0
        )
    )
    assert capsys.readouterr().out.startswith("The object")
    assert "2 models, on average 2 epochs" in (folder / "report.md").read_text()


def _run_killed_before_the_second(given, monkeypatch):
    fit = fitting.fit

    def killed(plan, *others, **options):
        if plan.seed == 2:
            raise KeyboardInterrupt
        return fit(plan, *others, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(fitting, "fit", killed)
        running.run(given)


def test_a_transformer_is_trained_with_imm_and_served(small, tmp_path, capsys):
    given = dataclasses.replace(
        small,
        output_dir=str(tmp_path / "transformer"),
        architecture="transformer",
        dropouts=(0.0, 0.0),
        imm=True,
        dynamic=False,
    )
    running.run(given)
    assert "1 x 16 transformer" in capsys.readouterr().out
    found = json.loads((tmp_path / "transformer" / "results.json").read_text())
    # Of 300 pieces.
    assert found["scores"]["model"]["test"]["perplexity"] < 250
    assert found["plan"]["imm"]
    using.generate(
        settings.GenerateSettings(
            model=str(given.output_dir), prompt="The object", max_tokens=5
        )
    )
    assert capsys.readouterr().out.startswith("The object")


def test_a_killed_run_goes_on_to_the_same_numbers(small, trained, tmp_path):
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "rlm_tf.commands", "train"]
    for field in dataclasses.fields(small):
        value = getattr(small, field.name)
        if field.name == "output_dir" or value == field.default:
            continue
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
        command.append(f"--{field.name}={shown}")
    command += [f"--output_dir={folder}", "--nodynamic"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 1 "):
            # The checkpoint of the first epoch comes at its end.
            while not list(folder.glob("checkpoints/checkpoint-*")):
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Resuming from" in done.stderr and "epoch 2" in done.stdout
    found, whole = (
        json.loads((path / "results.json").read_text())["scores"]["mixture"]
        for path in (folder, trained)
    )
    assert found == whole


def test_it_teaches_a_model_of_half_its_width(trained, small, tmp_path, capsys):
    wanted = DistilSettings(
        teacher=(str(trained),),
        student="0.5",
        export=str(tmp_path / "served"),
        output_dir=str(tmp_path / "run"),
        epochs=1,
    )
    check_distil_settings(wanted)
    distilling.run(wanted)
    shown = capsys.readouterr().out
    assert "perplexity" in shown and "| student alone |" in shown
    student = load_model(tmp_path / "run" / "student.keras")
    assert student.cell.units == 8
    vocabulary = (tmp_path / "run" / "vocabulary.txt").read_bytes()
    assert vocabulary == (trained / "vocabulary.txt").read_bytes()
    served = tf.saved_model.load(str(tmp_path / "served"))
    answer = served.signatures["score"](texts=tf.constant(["The class is called."]))
    assert np.isfinite(answer["total"]).all()

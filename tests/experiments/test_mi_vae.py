"""The binary of latent-variable models: runs, rows, kills, studies."""

from __future__ import annotations

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.vae import report, studies, sweep, training
from experiments.vae.config import VaeConfig, check_config, without_idle
from experiments.vae.model import build_model
from rlm_tf.data import SentenceBatches, load_corpus
from tests.experiments.binaries import run_binary

_SMOKE = studies.PRESETS["smoke"]
_SENTENCES = dataclasses.replace(
    _SMOKE,
    corpus="python-docs",
    fraction=0.01,
    most_tokens=8,
    latents="categorical",
    estimator="vimco",
    lambda_=0.2,
    input_dropout=0.2,
    state_dropout=0.2,
    output_dropout=0.2,
)


@pytest.fixture(scope="module")
def corpus():
    whole = load_corpus("python-docs")
    return dataclasses.replace(whole, valid=whole.valid[:900], test=whole.test[:900])


@pytest.mark.slow
def test_binary_trains_reports_and_skips_what_is_done(tmp_path):
    flags = ["--preset=smoke", "--lambda_=0.3", f"--output_dir={tmp_path}"]
    first = run_binary("mi_vae", *flags, check=True)
    (path,) = (tmp_path / "results").glob("*.json")
    row = json.loads(path.read_text())
    found = row["evaluation"]["train"]
    assert found["nll"] == pytest.approx(found["distortion"] + found["usage"])
    assert f"{found['nll']:.3f}" in first.stdout
    assert (tmp_path / "pareto.png").stat().st_size > 1000
    assert len(row["curve"]) == 2 and row["step_ms"] > 0
    assert row["command"] == (
        "python -m experiments.mi_vae --preset=default --num_symbols=20 --units=8 "
        "--num_samples=4 --lambda_=0.3 --batch_size=16 --steps=20 --epochs=2 "
        "--eval_samples=10 --seeds=1"
    )
    assert "done before" in run_binary("mi_vae", *flags).stdout
    other = run_binary("mi_vae", *flags, "--alpha=2")
    assert other.returncode and "alpha was 1.0 and is 2.0" in other.stderr
    mistaken = run_binary("mi_vae", "--study=symbols", "--steps=3")
    assert "--study has settings of its own; leave out --steps" in mistaken.stderr
    mistaken = run_binary("mi_vae", "--latents=categorical")
    assert "differentiates samples" in mistaken.stderr


@pytest.mark.slow
def test_sentences_are_exported_and_hours_projected(tmp_path):
    flags = ["--preset=smoke", "--corpus=python-docs", "--fraction=0.01"]
    flags += ["--most_tokens=6", f"--output_dir={tmp_path}"]
    saved = tmp_path / "saved"
    run_binary("mi_vae", *flags, f"--export={saved}", check=True)
    signatures = tf.saved_model.load(str(saved)).signatures
    assert set(signatures) == {"encode", "decode", "score", "interpolate"}
    answer = signatures["score"](
        texts=tf.constant(["the value of"]),
        num_samples=tf.constant(3),
        seed=tf.constant(1),
    )
    assert np.isfinite(answer["log_prob"]).all() and answer["lengths"][0] == 4
    projected = run_binary("mi_vae", "--preset=smoke", "--project_steps=1", flags[-1])
    assert "h for 20 steps" in projected.stdout
    mistaken = run_binary("mi_vae", "--preset=smoke", f"--export={saved}", flags[-1])
    assert "--export is for models of sentences" in mistaken.stderr


@pytest.mark.slow
def test_searches_go_on_and_tune_what_the_line_has(tmp_path):
    flags = ["--preset=smoke", "--objective=renyi", f"--output_dir={tmp_path}"]
    first = run_binary("mi_vae", *flags, "--trials=2", check=True)
    assert first.stdout.count("| trial_") == 2
    rows = sorted((tmp_path / "search").glob("trial_*/row.json"))
    values = [json.loads(row.read_text())["values"] for row in rows]
    assert set(values[0]) == {"learning_rate", "lambda_", "alpha"}
    assert values[0] != values[1]
    more = run_binary("mi_vae", *flags, "--trials=3", "--search=gp", "--initial=2")
    assert more.stdout.count("| trial_") == 3
    assert [json.loads(row.read_text())["values"] for row in rows] == values
    other = run_binary("mi_vae", *flags, "--trials=3", "--units=9")
    assert other.returncode and "units was 8 and is 9" in other.stderr
    mistaken = run_binary("mi_vae", *flags, "--trials=2", "--alpha=3")
    assert "--trials tunes what is given: alpha" in mistaken.stderr


def test_spaces_of_table_5_2():
    def names(**changes):
        config = dataclasses.replace(_SENTENCES, **changes)
        return {*sweep.space_of(config, "dropout")} - {
            "learning_rate",
            "input_dropout",
            "state_dropout",
            "output_dropout",
        }

    assert names(objective="kl") == {"lambda_"}
    assert names(objective="renyi") == {"lambda_", "alpha"}
    assert names(objective="power") == {"alpha"}
    assert names(objective="alpha_iwae") == {"alpha"}
    assert names(latents="quantised") == {
        "num_latents",
        "num_categories",
        "commitment",
        "decay",
    }
    assert "l2" in sweep.space_of(_SMOKE, "l2")
    with pytest.raises(ValueError, match="needs --corpus"):
        sweep.space_of(_SMOKE, "dropout")


def test_presets_and_studies_are_possible():
    kinds = {}
    for number, study in enumerate(studies.STUDIES.values()):
        for config in study([1]).values():
            check_config(config)
            kinds[number, report.line_of({"config": dataclasses.asdict(config)})] = (
                config
            )
    for config in [*studies.PRESETS.values(), *kinds.values()]:
        check_config(config)
        build_model(dataclasses.replace(config, units=2), 11)


class KilledError(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        _SMOKE,
        _SENTENCES,
        dataclasses.replace(_SMOKE, latents="quantised", num_latents=2),
    ],
    ids=["symbols", "sentences", "quantised"],
)
def test_a_killed_run_gives_the_same_row(config, corpus, tmp_path, monkeypatch):
    class Kill(keras.callbacks.Callback):
        def __init__(self, *_):
            super().__init__()

        def on_train_batch_begin(self, batch, logs=None):
            if self.model.optimizer.iterations == 13:
                raise KilledError

    def prepared():
        return training.prepare(config, corpus if config.corpus else None)

    expected = training.train(prepared(), tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(training.run_files, "EpochProgress", Kill)
        with pytest.raises(KilledError):
            training.train(prepared(), tmp_path / "killed", 1e-9)
    assert not (tmp_path / "killed" / "model.keras").exists()
    row = training.train(prepared(), tmp_path / "killed")
    assert row["evaluation"] == expected["evaluation"]
    assert row["curve"] == expected["curve"]


@pytest.mark.parametrize("name", sorted(studies.PRESETS))
def test_every_preset_has_a_quantised_baseline(name):
    """What it has set for estimates is left out; what a user gives is refused."""
    preset = dataclasses.replace(
        studies.PRESETS[name], latents="quantised", num_latents=2, num_categories=3
    )
    config = without_idle(preset)
    check_config(config)
    assert (config.lambda_, config.units) == (0.0, preset.units)
    given = dataclasses.replace(preset, lambda_=0.3)
    with pytest.raises(ValueError, match="quantised has no --lambda_"):
        check_config(without_idle(given, ["lambda_"]))
    assert without_idle(studies.PRESETS[name]) == studies.PRESETS[name]


def test_every_run_of_the_study_can_be_made():
    runs = studies.symbols([1])
    halved = sum(
        line["num_samples"] == 64 or line["grouping"] == "terms"
        for line in studies.LINES.values()
    )
    quantised = [name for name in runs if name.startswith("vq-vae")]
    assert len(runs) - len(quantised) == 4 * len(studies.LINES) - 2 * halved
    assert len(quantised) == 6
    for config in runs.values():
        check_config(config)
    for line in studies.LINES.values():
        small = dataclasses.replace(VaeConfig(**line), num_symbols=5, units=3)
        model = build_model(small, 5)
        assert model.most_samples == max(
            line["num_samples"], line["divergence_samples"]
        )


def test_steps_follow_each_other_over_passes_of_the_text():
    tokens = np.tile([1, 2, 0, 3, 0], 20)
    sentences = SentenceBatches(tokens, 0, 8, 5, seed=1)
    assert sentences.steps == 5
    one_epoch = training._steps_of(sentences, 3)
    found = [b.numpy() for epoch in range(5) for b in one_epoch(epoch, 0)]
    expected = [b.numpy() for number in range(3) for b in sentences.dataset(number)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    rest = [b.numpy() for b in one_epoch(2, 1)]
    for a, b in zip(rest, found[7:9], strict=True):
        np.testing.assert_array_equal(a, b)


def test_lines_are_named_by_what_they_share():
    config = dataclasses.asdict(dataclasses.replace(_SMOKE, divergence_samples=1))
    assert report.line_of({"config": config}) == "dreg 4/1 kl"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latents": "other"}, "--latents must be"),
        ({"steps": 7}, "multiple of --epochs"),
        ({"input_dropout": 0.1}, "give --corpus"),
        ({"fraction": 0.0}, "--fraction must lie in"),
        ({"learning_rate": 0.0}, "--learning_rate must be positive"),
        ({"divergence_samples": -1}, "--divergence_samples must be at least 0"),
        ({"grouping": "terms"}, "--grouping=terms is for --divergence_samples that"),
        ({"objective": "alpha_iwae"}, "needs --alpha; at 1 it is iwae"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_config(dataclasses.replace(_SMOKE, **changes))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--trade=0.1", "--search=gp"], "--search, --trade: only with --trials"),
        (["--trials=2", "--initial=2"], "--initial: only with --search=gp"),
        (["--trials=2", "--project_steps=3"], "only one of them"),
    ],
)
def test_flags_that_would_change_nothing_are_refused(given, message, tmp_path):
    found = run_binary("mi_vae", "--preset=smoke", f"--output_dir={tmp_path}", *given)
    assert found.returncode and message in found.stderr
    assert not list(tmp_path.iterdir())

"""The binary of latent-variable models: runs, rows, kills, studies."""

from __future__ import annotations

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.kit.rows import Rows
from experiments.mi_vae import studies, training
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


@pytest.mark.landing
@pytest.mark.slow
def test_binary_trains_reports_and_skips_what_is_done(tmp_path):
    flags = ["--preset=smoke", "--lambda_=0.3", f"--output_dir={tmp_path}"]
    first = run_binary("mi_vae", *flags, check=True)
    (row,) = Rows(tmp_path / "results").read_all()
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


@pytest.mark.landing
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


@pytest.mark.landing
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
    assert "--trials tunes what is given: --alpha" in mistaken.stderr


class KilledError(Exception):
    pass


@pytest.mark.landing
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


@pytest.mark.slow
@pytest.mark.landing
def test_runs_that_diverge_leave_the_others_their_table(tmp_path):
    """The objective of normal latents has no maximum, grouped as a difference."""
    flags = [
        "--preset=smoke",
        "--lambda_=0.9",
        "--divergence_samples=1",
        "--learning_rate=1",
        "--steps=200",
        f"--output_dir={tmp_path}",
    ]
    found = run_binary("mi_vae", *flags)
    assert found.returncode and "Training diverged" in found.stderr
    assert not (tmp_path / "table.md").exists()
    # As if the first seed had been lucky.
    evaluation = {"nll": 3.0, "usage": 0.1, "representational_kl": 0.2}
    evaluation |= {"active_units": 1, "effective_samples": 2.0}
    settings = json.loads((tmp_path / "smoke-seed1" / "config.json").read_text())
    row = {"name": "smoke-seed1", "settings": settings, "config": settings}
    row |= {"evaluation": {"train": evaluation}, "step_ms": 1.0}
    Rows(tmp_path / "results").write("smoke-seed1", row)
    found = run_binary("mi_vae", *flags, "--seeds=1,2")
    assert found.returncode and "smoke-seed2: Training diverged" in found.stderr
    assert "| smoke-seed1 | 0.9 |" in (tmp_path / "table.md").read_text()

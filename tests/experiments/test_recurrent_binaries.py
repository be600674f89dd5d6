"""The binaries of the recurrent language models, of averages and of reverse copy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from experiments.kit.rows import Rows
from tests.experiments.binaries import run_binary


@pytest.mark.landing
def test_mogrifier_lm_trains_resumes_and_exports(tmp_path):
    flags = ["--preset=smoke", "--connections=residual", f"--output_dir={tmp_path}"]
    first = run_binary(
        "mogrifier_lm", *flags, f"--export={tmp_path / 'saved'}", check=True
    )
    (row,) = Rows(tmp_path / "results").read_all()
    assert row["parameters"] <= 40_000
    assert len(row["evaluations"]) == 2
    assert f"{row['perplexity']['valid']:.2f}" in first.stdout
    assert (tmp_path / "results.png").stat().st_size > 1000
    answer = tf.saved_model.load(str(tmp_path / "saved")).signatures["score"](
        texts=tf.constant(["the value of", ""])
    )
    assert np.all(np.isfinite(answer["log_probs"]))
    again = run_binary("mogrifier_lm", *flags)
    assert "done before" in again.stdout
    other = run_binary("mogrifier_lm", *flags, "--epochs=3")
    assert other.returncode and "epochs was 2 and is 3" in other.stderr
    baseline = [*flags, "--cell=gru", "--rounds=0", "--project_steps=1"]
    assert "smoke-gru-seed1: " in run_binary("mogrifier_lm", *baseline).stdout
    mistaken = run_binary("mogrifier_lm", *flags, "--rounds=0", "--rank=3")
    assert "--rank=3 needs --rounds" in mistaken.stderr
    mistaken = run_binary("mogrifier_lm", "--study=trials", "--rounds=2")
    assert "--study has settings of its own; leave out --rounds" in mistaken.stderr


@pytest.mark.slow
@pytest.mark.landing
def test_reverse_copy_trains_and_reports(tmp_path):
    flags = ["--preset=smoke", "--cells=lstm", f"--output_dir={tmp_path}"]
    result = run_binary("reverse_copy", *flags, check=True)
    assert "| LSTM | 3 |" in result.stdout
    assert (tmp_path / "reverse_copy.png").stat().st_size > 1000
    (row,) = Rows(tmp_path / "results").read_all()
    assert row["command"] == (
        "python -m experiments.reverse_copy --preset=smoke --cells=lstm --lengths=3 "
        "--learning_rates=0.01 --seeds=1"
    )
    assert "done before" in run_binary("reverse_copy", *flags).stdout
    mistaken = run_binary("reverse_copy", "--cells=gru")
    assert "--cells must be some of" in mistaken.stderr


@pytest.mark.landing
def test_averaging_computes_every_part(tmp_path):
    result = run_binary(
        "averaging",
        "--preset=smoke",
        f"--output_dir={tmp_path}",
        check=True,
    )
    for text in ("2TA, E/4", "algorithm 2", "losses at switches"):
        assert text in result.stdout
    assert "Over-fitting, E" in result.stdout and "A new basin, E" in result.stdout
    figures = ("losses", "two_tailed", "overfitting", "basin", "lengths")
    for name in (*figures, "least_squares"):
        assert (tmp_path / f"averaging_{name}.png").stat().st_size > 1000


@pytest.mark.landing
def test_tune_searches_and_goes_on(tmp_path):
    flags = [
        "--preset=smoke",
        "--epochs=1",
        "--fraction=0.01",
        "--initial=1",
        f"--output_dir={tmp_path}",
    ]
    run_binary("tune", *flags, "--trials=1", check=True)
    result = run_binary("tune", *flags, "--trials=2", check=True)
    assert len(list(tmp_path.glob("search/trial_*/row.json"))) == 2
    assert (tmp_path / "parallel_coordinates.png").stat().st_size > 1000
    assert "| valid perplexity |" in result.stdout
    mistaken = run_binary("tune", *flags, "--rounds=3")
    assert "tunes what is given: --rounds" in mistaken.stderr
    mistaken = run_binary("tune", *flags, "--budget=300")
    assert mistaken.stderr.count("error:") == 1 and "Traceback" not in mistaken.stderr

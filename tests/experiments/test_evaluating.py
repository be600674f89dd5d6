"""All ways of evaluating a finished run, and what a kill leaves of one."""

import dataclasses
import json

import keras
import numpy as np
import pytest

from experiments.kit import tuning
from experiments.kit.rows import Rows
from experiments.mogrifier_lm import evaluating, projection, search_spaces, training
from experiments.mogrifier_lm.presets import PRESETS
from rlm_tf.command_line.json_files import with_nulls
from rlm_tf.data import load_corpus
from rlm_tf.evaluation import GradientStatistics

CONFIG = dataclasses.replace(PRESETS["smoke"], fraction=0.01, budget=20_000)


@pytest.fixture(scope="module")
def corpus():
    whole = load_corpus(CONFIG.corpus)
    return dataclasses.replace(whole, valid=whole.valid[:300], test=whole.test[:200])


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """Returns folder and row of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    return folder, training.train(training.prepare(CONFIG, corpus), folder)


class KilledError(Exception):
    pass


@pytest.mark.landing
def test_a_killed_run_gives_the_same_row(corpus, finished, tmp_path, monkeypatch):
    class Kill(keras.callbacks.Callback):
        def __init__(self, *_):
            super().__init__()

        def on_train_batch_begin(self, batch, logs=None):
            if self.model.optimizer.iterations == 9:
                raise KilledError

    folder = tmp_path / "one"
    with monkeypatch.context() as patch:
        patch.setattr(training.run_files, "EpochProgress", Kill)
        with pytest.raises(KilledError):
            training.train(training.prepare(CONFIG, corpus), folder, 1e-9)
    assert not (folder / "model.keras").exists()
    row = training.train(training.prepare(CONFIG, corpus), folder)
    _, expected = finished
    for name in ("perplexity", "raw_valid_perplexity", "evaluations", "curve"):
        assert row[name] == expected[name], name
    # The times of epochs before a kill count, too; and those of a finished run.
    again = training.train(training.prepare(CONFIG, corpus), folder)
    assert again["step_ms"] == row["step_ms"] is not None


@pytest.mark.landing
def test_ways_are_put_into_the_row_of_a_finished_run(corpus, finished, tmp_path):
    folder, row = finished
    rows = Rows(tmp_path)
    rows.write("one", with_nulls(row))
    settings = evaluating.Settings(
        2, 1, (0.5, 1.0), learning_rates=(1e-4, 1e-3), decays=(1e-3,), epsilons=(1e-3,)
    )
    found = evaluating.add_ways(rows, "one", folder, corpus, settings)
    assert rows.read("one") == json.loads(json.dumps(found))
    ways = found["ways"]
    assert ways["command"].endswith("--mc_samples=2 --dynamic_mc_samples=1")
    assert list(ways["perplexity"]) == [
        "static",
        "dynamic",
        "static, 1 mask",
        "dynamic, 1 mask",
        "static, 2 masks",
    ]
    # The row is of other rows and windows; and a temperature was searched.
    static = ways["perplexity"]["static"]["valid"]
    np.testing.assert_allclose(static, row["perplexity"]["valid"], rtol=0.01)
    dynamic = ways["dynamic"]
    best = min((t for t in dynamic["trials"] if t[0] is not None), key=lambda t: t[0])
    names = ("nats_when_tuned", "learning_rate", "decay", "epsilon")
    assert best == [dynamic[name] for name in names]
    # Done once, it is not done again: the model may be gone.
    assert (
        evaluating.add_ways(rows, "one", tmp_path / "gone", corpus, settings) == found
    )
    gone = tmp_path / "gone"
    for other in ({"samples": 3}, {"epsilons": (1e-2,)}):
        changed = settings._replace(**other)
        with pytest.raises(ValueError, match=r"--mc_samples needs .*gone"):
            evaluating.add_ways(rows, "one", gone, corpus, changed)


@pytest.mark.landing
def test_models_without_dropout_have_no_monte_carlo_evaluation(corpus):
    config = dataclasses.replace(CONFIG, input_dropout=0.0, state_dropout=0.0)
    model = training.prepare(config, corpus).model
    short = dataclasses.replace(corpus, valid=corpus.valid[:60], test=corpus.test[:60])
    settings = evaluating.Settings(epsilons=(1e-3,), decays=(1e-3,))
    found = evaluating.grid(model, short, corpus.train[:500], settings)
    assert list(found["perplexity"]) == ["static", "dynamic"]


@pytest.mark.landing
def test_dynamic_evaluation_is_tuned_in_the_published_spaces(corpus, tmp_path):
    model = training.prepare(CONFIG, corpus).model
    short = dataclasses.replace(corpus, valid=corpus.valid[:40])
    space = search_spaces.DYNAMIC_SPACES["dynamic-words"]
    seen = []

    def run(values, folder):
        loss = evaluating.dynamic_nats(model, short, corpus.train[:300], **values)
        seen.append(values)
        return {"loss": loss if len(seen) > 1 else np.nan}

    options = {"trials": 2, "initial": 2, "seed": 1}
    tuning.Tuner(space, run, tmp_path, **options).search()
    best, worst = tuning.rows_in(tmp_path)
    assert 0 < best["loss"] < worst["loss"] == 20.0
    assert set(best["values"]) == {"window", "learning_rate", "decay", "epsilon"}
    assert f"| {best['loss']:.4f} |" in tuning.trials_table([best, worst])
    tuning.parallel_coordinates([best, worst], space, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000
    tuning.parallel_coordinates([worst], space, tmp_path / "nothing.png")
    assert not (tmp_path / "nothing.png").exists()
    # Nothing is left to be tried.
    tuning.Tuner(space, run, tmp_path, **options).search()
    assert len(seen) == 2


def test_missing_corpora_have_stand_ins_of_their_size():
    corpus = projection.stand_in("mwc-fi")
    assert len(corpus.train) == 13_000_000 and len(corpus.vocabulary) == 250
    assert corpus.train.max() == 249 and corpus.train.min() == 0


def test_projection_extrapolates_steps(corpus):
    found = projection.project(CONFIG, corpus, 1)
    steps = found["steps_per_epoch"] * CONFIG.epochs
    np.testing.assert_allclose(
        found["hours_of_all_epochs"] * 3600, found["step_seconds"] * steps
    )
    assert found["parameters"] <= CONFIG.budget and found["step_seconds"] > 0


def test_a_loss_that_is_no_number_is_infinite(corpus, monkeypatch):
    monkeypatch.setattr(
        evaluating.evaluation, "target_log_probs", lambda *_: np.array([0.0, np.nan])
    )
    assert evaluating.nats_of(None, None, 1, 2) == np.inf


@pytest.mark.parametrize(
    ("losses", "rate", "nats"),
    [
        ([5.0, 4.0, 4.5, np.nan], 1e-3, 4.5),
        ([np.nan, 4.0, np.nan, np.nan], None, None),
    ],
)
def test_what_diverges_later_is_not_chosen(corpus, monkeypatch, losses, rate, nats):
    """The second learning rate, and the best at the beginning, diverges after it."""
    settings = evaluating.Settings(decays=(0.0,), epsilons=(1e-3,), tuned_on=100)
    loss_of = dict(zip(settings.learning_rates, losses, strict=True))

    def target_log_probs(model, tokens, *_, dynamic, **__):
        loss = loss_of[dynamic.learning_rate]
        if len(tokens) > 100 and dynamic.learning_rate == settings.learning_rates[1]:
            loss = np.nan
        return np.full(len(tokens), -loss)

    monkeypatch.setattr(evaluating.evaluation, "target_log_probs", target_log_probs)
    monkeypatch.setattr(
        evaluating.evaluation,
        "gradient_statistics",
        lambda *_, **__: GradientStatistics([np.ones(1, np.float32)], 1),
    )
    dynamic, chosen = evaluating._best_dynamic(
        None, corpus, corpus.train[:100], settings, 1.0
    )
    assert dynamic.learning_rate == chosen["learning_rate"]
    assert rate in (None, chosen["learning_rate"])
    assert chosen["nats_when_tuned"] == nats
    shown = [None if np.isnan(loss) else loss for loss in losses]
    assert [trial[0] for trial in chosen["trials"]] == shown

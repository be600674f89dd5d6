"""Fine-tuning in studies of encoders: Table A.2, all of GLUE, numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

from experiments.electra import report as electra_report
from experiments.electra.config import PRESETS as ELECTRA
from experiments.electra.config import table_a2
from experiments.electra.finetuning import best_of
from experiments.electra.pretraining import runs_of
from experiments.electra.task_report import of_tasks
from experiments.kit import encoder_finetuning, encoder_tasks
from experiments.kit.encoder_finetuning import Recipe
from experiments.kit.task_list import GLUE
from rlm_tf.commands.encoders.examples import Examples, linear_peer
from rlm_tf.data import LabelledTexts, encoder_vocabulary
from rlm_tf.layers import TransformerEncoder
from rlm_tf.training import read_metrics_log
from tests.experiments.task_rows import task_row


def test_settings_of_table_a2_and_the_best_of_them(tmp_path):
    settings = table_a2(12)
    assert len(settings) == 3 * 5 * 4 * 2 * 3 == len(table_a2(4))
    assert {each["batch_size"] for each in table_a2(24)} == {8, 16, 32, 64}
    recipes = [Recipe(**each) for each in settings[:4]]
    asked = []

    def tuned(recipe, place):
        asked.append(place.name)
        if len(asked) == 3:
            raise KeyboardInterrupt
        score = -float(recipe.batch_size == 32) - recipe.warm_up
        return {"valid_score": score, "seconds": 2.0, "test": {"accuracy": 0.5}}

    with pytest.raises(KeyboardInterrupt):
        best_of(recipes, tuned, tmp_path)
    found = best_of(recipes, tuned, tmp_path)
    # Those before the break are not asked again.
    assert asked == [f"setting-{number}" for number in (0, 1, 2, 2, 3)]
    values = [value for value, _ in found["tried"]]
    assert found["valid_score"] == max(values) and found["seconds"] == 8.0
    assert found["setting"]["length"] == 256 and len(found["tried"]) == 4


def test_the_average_of_glue_needs_all_tasks():
    rows = []
    for place, (task, metric) in enumerate(GLUE.items()):
        scores = {metric: 0.1 * place, "f1": 0.99}
        if task == "mnli":
            scores["accuracy_mismatched"] = 0.4
        peers = {"tfidf": scores, "majority": scores}
        row = task_row("original", 1, 0, 0.5, task)
        rows.append({**row, "test": scores, "peers": peers, "generator": 4})
    # The mean of 0 and 0.4 is MNLI's.
    mean = 100 * (0.2 + 0.1 * sum(range(1, 8))) / 8
    tables = of_tasks(rows)
    assert f"| original, 4 layers | 1 | {mean:.1f} |" in tables["glue"]
    assert "tf-idf, linear, for original" in tables["glue"]
    assert set(of_tasks(rows[:-1])) == {"tasks"}
    searched = of_tasks([{**rows[0], "tried": []}, rows[0]])["tasks"]
    assert "| mnli | accuracy | original, 4 layers, settings of Table A.2 |" in searched


@pytest.mark.landing
def test_fine_tuning_of_numbers_and_of_two_test_texts(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    texts_a = [" ".join(rng.choice(["ab", "cd", "ef"], 5)) for _ in range(40)]
    numbers = np.array([text.count("ab") for text in texts_a], np.float32)
    examples = LabelledTexts(texts_a, numbers, (), texts_a)
    vocabulary = encoder_vocabulary("\n".join(texts_a), 290)
    model = TransformerEncoder(
        len(vocabulary), num_layers=1, width=4, num_heads=2, num_segments=2
    )
    monkeypatch.setattr(
        encoder_finetuning, "other_tests", lambda task: {"_odd": examples}
    )
    found = encoder_finetuning.finetune(
        model,
        vocabulary,
        "stsb",
        Examples(examples, examples, examples, []),
        tmp_path,
        recipe=Recipe(0.01, 8, epochs=2, weight_decay=0.01, length=32),
        seed=1,
    )
    assert found["epochs"] == 2 and found["valid_score"] < 0
    assert found["test"]["spearman"] == found["test"]["spearman_odd"]
    assert -1 <= found["test"]["spearman"] <= 1
    monkeypatch.setattr(encoder_tasks, "other_tests", lambda task: {"_odd": examples})
    peers = encoder_tasks.peers("stsb", Examples(examples, examples, examples, []))
    assert peers["tfidf"]["spearman"] == peers["tfidf"]["spearman_odd"] > 0.9
    assert peers["majority"] == {"spearman": 0.0, "spearman_odd": 0.0}


@pytest.mark.landing
def test_peers_and_epochs_are_chosen_by_the_metric_that_counts(tmp_path):
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(["ab", "cd", "ef"], 4)) for _ in range(60)]
    labels = np.array([text.count("ab") < 3 for text in texts], np.int32)
    examples = LabelledTexts(texts, labels, ("0", "1"))
    whole = Examples(examples, examples, examples, [])
    asked = []

    def score(given, said):
        assert given is examples
        asked.append(encoder_tasks.chosen_by("cola")(given, said))
        # The worst is to be taken.
        return -asked[-1]

    found = linear_peer(whole, score)
    assert len(set(asked)) > 1
    assert matthews_corrcoef(labels, found.predictions) == pytest.approx(min(asked))
    best = encoder_tasks.peers("cola", whole)["tfidf"]["matthews"]
    assert best == pytest.approx(max(asked))
    vocabulary = encoder_vocabulary("\n".join(texts), 290)
    found = encoder_finetuning.finetune(
        TransformerEncoder(len(vocabulary), num_layers=1, width=4, num_heads=2),
        vocabulary,
        "cola",
        whole,
        tmp_path,
        recipe=Recipe(0.05, 8, epochs=3),
        seed=1,
    )
    logged = [row["val_chosen"] for row in read_metrics_log(tmp_path / "metrics.jsonl")]
    assert len(logged) == 3 and found["valid_score"] == max(logged)
    # The same texts are held out and tested.
    assert found["test"]["matthews"] == pytest.approx(found["valid_score"])


@pytest.mark.landing
def test_hours_of_pre_training_and_of_table_a2(tmp_path):
    config = dataclasses.replace(
        ELECTRA["smoke"], arms=("decoupled",), project_steps=1, rates=(1e-3,)
    )
    (run,) = runs_of(config, [1])
    found = run.train(run.prepare(), tmp_path / "decoupled-x")
    # Rows of two are timed, a step has eight of them.
    assert found["hours_here"] == pytest.approx(8 * found["step_seconds"] / 3600)
    tuning = found["tuning"]
    # Three rates, four sizes of batches, two decays, three warm-ups, five epochs.
    assert tuning["settings"] == 360
    passes = 72 * (2 + 3 + 5 + 10 + 20)
    assert tuning["hours_of_all"] == pytest.approx(passes * tuning["hours_of_a_pass"])
    shown = electra_report.projections([found])
    assert shown.splitlines()[-1].startswith("| x |") and "| 360 |" in shown

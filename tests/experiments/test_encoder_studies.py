"""The studies of encoders: texts, reports, mistakes; each binary once, end to end."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from experiments.electra import report as electra_report
from experiments.electra import road_map
from experiments.electra.config import PRESETS as ELECTRA
from experiments.electra.config import ElectraConfig
from experiments.electra.figures import bounds_by_rates, inner_minimum
from experiments.electra.gradients import TermNorms, variables_of_parts
from experiments.electra.naming import standalone_name
from experiments.electra.pretraining import runs_of
from experiments.electra.standalone import first_rows, n_gram_detector
from experiments.kit.encoder_text import EncoderText, articles
from rlm_tf.data import Segments, encoder_vocabulary
from rlm_tf.evaluation import CorruptedText
from rlm_tf.models import Electra
from rlm_tf.objectives.replaced_tokens import bound, sweet_spot
from tests.experiments.binaries import run_binary
from tests.experiments.task_rows import task_row
from tests.models.encoders.toy import encoder, masked, texts


def test_articles_are_parted_by_empty_lines():
    text = (
        "\n = Robins = \n \n A robin is a <unk> bird . \n = = Food = = \n"
        " It eats 1 @,@ 000 worms @-@ or 2 @.@ 5 . \n \n = Owls = \n Owls hoot . \n"
    )
    assert articles(text).split("\n\n") == [
        "= Robins =\nA robin is a unk bird .\n"
        "= = Food = =\nIt eats 1,000 worms-or 2.5 .",
        "= Owls =\nOwls hoot .",
    ]


# === electra ===


def _detector_row(arm, generator, seed, f1, **more):
    scores = {"f1": f1, "cross_entropy": 0.5 - f1, "accuracy": 0.8 + f1 / 10}
    own = {"test": {**scores, "f1_by_frequency": [f1, f1 / 2]}, "valid": scores}
    return {
        "name": f"{arm}-{generator}-{seed}",
        "arm": arm,
        "generator": generator,
        "rate": 1e-3,
        "generator_rate": None if arm == "original" else 5e-4,
        "weight": 50.0,
        "seed": seed,
        "steps": 100,
        "stage": "main",
        "joint": {"f1": 0.9 - f1, "generator": 3.0},
        "standalone": {"4:1": own, "1:1": own},
        "curve": {
            "epoch": [0, 1],
            "4:1_f1": [f1 / 2, f1],
            "4:1_cross_entropy": [0.6, 0.5],
            "val_f1": [0.1, 0.2],
            "norm_generator_generator": [1.0, 2.0],
            **({"norm_generator_shared": [0.5, 0.5]} if arm == "original" else {}),
            "norm_discriminator_discriminator": [8.0, 10.0],
        },
        **more,
    }


_MASKED = {
    "name": "masked",
    "arm": "masked",
    "generator": 4,
    "rate": 1e-3,
    "seed": 1,
    "test": {"nll": 4.25, "accuracy": 0.4},
    "n_gram": {"cross_entropy": 3.5, "accuracy": 0.45},
    "frequency": {"cross_entropy": 6.5, "accuracy": 0.05},
    "replaced": 0.09,
    "n_gram_detector": {"f1": 0.3, "accuracy": 0.92},
}
_GAINS = {"original": 0.0, "decoupled": 0.1}


def test_report_of_detectors(tmp_path):
    rows = [
        _detector_row(arm, layers, seed, 0.2 + gain + 0.01 * layers + 0.001 * seed)
        for arm, gain in _GAINS.items()
        for layers in (1, 4)
        for seed in (1, 2, 3)
    ]
    gone = {"diverged": "training diverged", "stage": "sweep", "rate": 8e-3}
    swept = _detector_row("original", 4, 1, 0.2, **gone)
    del swept["standalone"], swept["joint"]
    lost = {**swept, "stage": "main"}
    rows += [_MASKED, swept, lost, _detector_row("decoupled", 4, 1, 0.3, stage="sweep")]
    for arm, gain in _GAINS.items():
        row = task_row(f"{arm}", 1, 0, 0.7 + gain)
        rows.append({**row, "generator": 4, "rate": 1e-3})
    text = electra_report.report(rows, tmp_path)
    assert "| sst2-tenth | accuracy | decoupled, 4 layers | 1 | 80.0 | +10.0 |" in text
    assert "| 4 layers | 1 | 4.250 | 40.0 | 9.0 |" in text
    assert "| n-gram of both sides |  | 3.500 | 45.0 |  |" in text
    # Beside the original of as many layers, seed by seed; and larger less smaller.
    assert "| decoupled | 4 | 3 | 0.342 ± 0.001 | **+0.100 ± 0.000** |" in text
    assert "| decoupled | 4 less 1 | **+0.030 ± 0.000** |" in text
    assert "| n-gram |  |  | 0.300 |  |  |  | 92.00 |  |  |" in text
    # A detector's rank on its own generator's text is the other way round here.
    assert "| rank correlation with 4:1 |  |  | -1.00 | 1.00 | 1.00 |" in text
    assert "| original | 4 | 1 | diverged |" in text
    assert "| original | 4 | 100 | 0.008 |  | 50 | 1 | diverged |  |  |" in text
    for name in ("map", "curves", "sizes", "sweep"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000


def test_detectors_that_were_scored_on_fewer_texts_are_ranked_by_those():
    rows = [_detector_row("original", 1, seed, f1) for seed, f1 in ((1, 0.2), (2, 0.4))]
    rows.append(_detector_row("original", 4, 1, 0.5))
    rows.append(_detector_row("decoupled", 1, 1, 0.1))
    for row in rows[1:3]:
        del row["standalone"]["1:1"]
    lines = electra_report.ranking(rows).splitlines()[2:]
    # Of its two seeds the one with both texts counts.
    assert lines[0] == "| original | 1 | 1 | 0.700 | 0.200 | 0.200 |"
    assert lines[1] == "| original | 4 | 1 | 0.400 | 0.500 |  |"
    assert lines[3] == "| rank correlation with 4:1 |  |  | -1.00 | 1.00 | 1.00 |"


def test_steps_from_one_method_to_the_other():
    rows = []
    for arm, rate, generator_rate, f1 in (
        ("original", 1e-3, None, 0.24),
        ("separate", 1e-3, None, 0.19),
        ("decoupled", 1e-3, 1e-3, 0.2),
        ("decoupled", 2e-3, 2e-3, 0.18),
        ("disentangled", 1e-3, 2e-3, 0.23),
    ):
        for seed in (2, 1):
            more = {"rate": rate, "generator_rate": generator_rate}
            rows.append(_detector_row(arm, 4, seed, f1 + seed / 1000, **more))
    # One is missing, and then one is there after fewer steps.
    assert "steps" not in electra_report.tables(rows)
    more = {"rate": 1e-3, "generator_rate": 2e-3, "stage": "rates"}
    rows.append(_detector_row("decoupled", 4, 1, 0.15, steps=50, **more))
    assert "steps" not in electra_report.tables(rows)
    rows.append(_detector_row("decoupled", 4, 1, 0.15, **more))
    lines = electra_report.tables(rows)["steps"].splitlines()[2:]
    assert len(lines) == 6
    assert lines[0].startswith("| original | 0.001 |  |  | 1 | 0.241 |")
    assert "| the generator's rate twice as high | 1 | 0.150 |" in lines[3]


def test_the_map_is_equation_1_10_and_its_dots_are_sweet_spots():
    rates, layers = np.geomspace(1e-5, 1e-2, 121), 4
    found = bounds_by_rates(rates, layers)
    # xi = c^(2 (N - 1) / N), c = 3, of generator and detector.
    speed = 3.0**1.5
    for detector, generator in ((0, 0), (60, 80), (100, 40), (120, 120)):
        loss = math.log(8000) * (1 - rates[generator] * speed) ** 1000
        left = (1 - rates[detector] * speed) ** 1000
        expected = math.exp(-loss) * left + 0.2 * math.sqrt(loss)
        assert found[detector, generator] == pytest.approx(expected, rel=1e-9)
    losses = math.log(8000) * (1 - rates * speed) ** 1000
    places = [inner_minimum(row) for row in found]
    assert {place is None for place in places} == {True, False}
    for rate, place in zip(rates, places, strict=True):
        best = sweet_spot((1 - rate * speed) ** 1000, 0.2)
        if place is None:
            # None at all, or a perfect generator is better still.
            assert best is None or bound(best, (1 - rate * speed) ** 1000, 0.2) > 0
            continue
        assert losses[place + 1] <= best <= losses[place - 1]
    # The better the detector, the stronger is its best generator.
    dots = [place for place in places if place is not None]
    assert dots == sorted(dots) and dots[-1] > dots[0]


def test_runs_have_names_of_their_own_and_detectors_need_texts(tmp_path):
    for config in ELECTRA.values():
        config.check()
        names = [run.name for run in runs_of(config, [1])]
        assert len(set(names)) == len(names)
    assert (
        standalone_name(ElectraConfig(), "2:3") == "3000steps-masked-g2-rate0.002-seed3"
    )
    config = dataclasses.replace(ELECTRA["tasks"], encoders_dir=str(tmp_path))
    with pytest.raises(FileNotFoundError, match="same command without --tasks"):
        runs_of(config, [1])[0].prepare()
    config = dataclasses.replace(ELECTRA["smoke"], arms=("decoupled",))
    (run,) = runs_of(config, [1])
    with pytest.raises(FileNotFoundError, match="--preset=generators"):
        run.train(run.prepare(), tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": ("both",)}, "--arms must be some of masked, original"),
        ({"standalone": ("four",)}, "--standalone must be LAYERS:SEED"),
        ({"steps": 10, "looks": 3}, "--steps must be a multiple of --looks"),
        ({"rates": (0.0,)}, "--rates must be positive"),
        ({"stage": "last"}, "--stage must be one of main, rates, sweep"),
        ({"tasks": ("x",)}, "--tasks must be some of sst2-tenth, .*; found x"),
        ({"table_a2": 361}, "--table_a2 must be from 0 to 360, found 361"),
        ({"table_a2": 3}, "--table_a2 needs --tasks"),
        ({"task_rate": 0.0}, "--task_rate must be positive"),
        ({"dropout": 1.0}, r"--dropout must lie in \[0, 1\)"),
    ],
)
def test_mistakes_in_settings(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(ElectraConfig(), **change).check()


def test_n_grams_find_words_that_do_not_belong():
    line = "the cat sat on the mat and the dog lay on the rug by the door"
    text = "\n\n".join([line] * 30)
    vocabulary = encoder_vocabulary(text, 60)
    rows = Segments(text, vocabulary, 12, 1)
    rng = np.random.default_rng(0)
    pieces = np.unique(rows.tokens[rows.tokens > 4])
    chosen = (rng.random(rows.tokens.shape) < 0.15) & (rows.tokens > 4)
    shown = np.where(chosen, rng.choice(pieces, rows.tokens.shape), rows.tokens)
    corrupted = CorruptedText(
        shown, shown != rows.tokens, rows.tokens == 0, rows.tokens
    )
    whole = EncoderText(vocabulary, rows, rows, rows, "")
    found = n_gram_detector(whole, corrupted, corrupted)
    assert found.f1 > 0.6 and found.accuracy > 0.9
    assert len(first_rows(corrupted, 3).labels) == 3


def test_the_largest_stable_rate_and_the_best_of_unimodal_scores():
    rates = (1.0, 2.0, 3.0, 4.0, 5.0)
    for last in rates:
        assert road_map.largest_stable(rates, lambda r, last=last: r <= last) == last
    with pytest.raises(ValueError, match="diverges at the smallest of --rates, 1,"):
        road_map.largest_stable(rates, lambda _: False)
    for number in range(1, 9):
        for best in range(number):
            asked = []

            def score(value, best=best, asked=asked):
                asked.append(value)
                return -abs(value - best)

            assert road_map.best_of_unimodal(range(number), score) == best
            assert len(asked) == len({*asked}) <= 6


@pytest.mark.parametrize("diverges", [True, False])
def test_the_road_map_takes_one_decision_after_the_other(capsys, diverges):
    config = road_map.PRESETS["small"]
    asked = []
    found_nothing = {
        "standalone": {"4:1": {"valid": {"f1": 0.0}}},
        "joint": {"discriminator": 0.33, "replaced": 0.1},
    }

    def run(generator, rate, generator_rate):
        asked.append((generator, rate, generator_rate))
        if rate > 2e-3:
            return {"diverged": "at step 1"} if diverges else found_nothing
        f1 = 0.5 - abs(generator_rate - 7e-4)
        # What knows the share alone has 0.325 nats; small rates have hardly begun.
        loss = 0.25 if rate > 5e-4 else 0.324
        joint = {"discriminator": loss, "replaced": 0.1}
        return {"standalone": {"4:1": {"valid": {"f1": f1}}}, "joint": joint}

    found = road_map.search(config, run)
    chosen = {"generator": 4, "rate": 2e-3, "generator_rate": 7e-4, "f1": 0.5}
    assert found == {**chosen, "best_seen": [2e-3, 7e-4, 0.5]}
    said = road_map.outcome(found, config.least_f1)
    assert said.startswith("generator of 4 layers, detector's rate 0.002, generator's")
    assert "\n" not in said
    lost = {**found, "f1": 0.0}
    assert "it has found nothing: no F1 of 0.02" in road_map.outcome(lost, 0.02)
    assert "better was seen: detector's rate 0.002" in road_map.outcome(lost, 0.02)
    # The detector's rate first, until it diverges; the generator's at the last stable.
    assert [rate for _, rate, _ in asked[:4]] == [5e-4, 1e-3, 2e-3, 4e-3]
    assert {rate for _, rate, _ in asked[4:]} == {2e-3}
    assert {generator for generator, *_ in asked} == {4}
    assert ("detector's rate 0.004: diverges\n" in capsys.readouterr().out) == diverges


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": ("original",)}, "--arms must be decoupled"),
        ({"rates": (2e-3, 1e-3)}, "--rates must be rates in rising order"),
        ({"generator_rates": ()}, "--generator_rates must be rates in rising"),
        ({"least_f1": 1.0}, r"--least_f1 must lie in \[0, 1\), found 1.0"),
        ({"generator_rates": (0.0, 1.0)}, "--generator_rates must be positive"),
        ({"standalone": ()}, "--weights must be one number, and --standalone"),
    ],
)
def test_mistakes_in_settings_of_the_road_map(change, message):
    config = road_map.PRESETS["smoke"]
    config.check()
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(config, **change).check()


@pytest.mark.eager
@pytest.mark.parametrize("embeddings", ["shared", "separate"])
def test_norms_of_gradients_before_clipping(embeddings):
    model = Electra(encoder(), encoder(seed=1), embeddings=embeddings, clip_norm=1e-3)
    batch = masked(texts())
    callback, logs = TermNorms(batch), {}
    callback.set_model(model)
    callback.on_epoch_end(0, logs)
    with tf.GradientTape(persistent=True) as tape:
        # With the draws that the callback has put back.
        terms = model.objective_terms(batch, None, None, training=True)
        losses = {
            name: tf.reduce_sum(term.loss * term.weights) / tf.reduce_sum(term.weights)
            for name, term in terms.items()
        }
        losses["discriminator"] *= 50
    expected = {}
    for part, own in variables_of_parts(model).items():
        for name, loss in losses.items():
            gradients = tape.gradient(loss, [v.value for v in own])
            squares = [
                np.sum(np.square(tf.convert_to_tensor(g)))
                for g in gradients
                if g is not None
            ]
            if squares:
                expected[f"norm_{name}_{part}"] = math.sqrt(sum(squares))
    assert logs == pytest.approx(expected, rel=1e-4)
    before = [np.array(each) for each in model.variables]
    callback.on_epoch_end(1, {})
    # Seeds of draws and of dropout, too, are as they were.
    for each, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(each, value, err_msg=each.path)
    assert len(logs) == {"shared": 4, "separate": 2}[embeddings]


# === Both ===


@pytest.mark.landing
def test_electra_from_end_to_end(tmp_path):
    flags = ("--preset=smoke", f"--output_dir={tmp_path}", "--seeds=1")
    printed = run_binary("electra", *flags, check=True).stdout
    for title in ("nats a masked piece", "F1, own generator", "rarest fifth"):
        assert title in printed
    rows = [
        json.loads(line)["row"]
        for line in (tmp_path / "results" / "rows.jsonl").read_text().splitlines()
    ]
    assert [row["arm"] for row in rows] == ["masked", "original", "decoupled"]
    for row in rows[1:]:
        digest = row["standalone"]["1:1"]["corrupted_sha256"]
        assert digest == rows[0]["corrupted_sha256"]
    again = run_binary("electra", *flags, check=True).stdout
    assert again.count("done before") == 3
    # Its text serves the search, too, which finds its runs again.
    search = (*flags, "--rates=0.001", "--generator_rates=0.0005,0.001")
    printed = run_binary("electra.road_map", *search, check=True).stdout
    chosen = json.loads((tmp_path / "road_map.json").read_text())
    assert chosen["rate"] == 1e-3 and chosen["generator_rate"] in (5e-4, 1e-3)
    assert "generator of 1 layer, detector's rate 0.001, generator's" in printed
    again = run_binary("electra.road_map", *search, check=True).stdout
    assert again.count("done before") == len(chosen["runs"])
    # Its detectors are fine-tuned.
    task = ("--tasks=docs-halves", "--task_steps=20", f"--encoders_dir={tmp_path}")
    flags = ("--preset=smoke", f"--output_dir={tmp_path / 'tuned'}", "--seeds=1")
    printed = run_binary("electra", *flags, *task, check=True).stdout
    for arm in ("masked, 1 layer", "decoupled, 1 layer", "tf-idf, linear"):
        assert f"| docs-halves | accuracy | {arm} | 1 |" in printed
    # And its masked language model is what is fine-tuned.
    flags = ("--preset=smoke", f"--encoders_dir={tmp_path}", "--seeds=1")
    arms = ("--arms=imm,imm-k5", f"--output_dir={tmp_path / 'tasks'}")
    printed = run_binary("imm_bert", *flags, *arms, check=True).stdout
    for arm in ("imm", "imm-k5", "tf-idf, linear"):
        assert f"| docs-halves | accuracy | {arm} | 1 |" in printed

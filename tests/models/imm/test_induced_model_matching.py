"""The wrapper as a Keras model: other language models, fit() options, mistakes."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import (
    AWDLanguageModel,
    InBatchContexts,
    InducedModelMatching,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.training import BestWeights
from tests.models.imm import imm_fixtures as fixtures

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

# === Other language models ===


@pytest.mark.graph
@pytest.mark.parametrize(
    "contexts",
    [
        InBatchContexts(min_count=3),
        pytest.param(fixtures.sampled(), marks=pytest.mark.landing),
    ],
    ids=["in-batch", "sampled"],
)
def test_transformer_of_keras_layers_trains(contexts, tmp_path):
    transformer = fixtures.causal_transformer()
    model = InducedModelMatching(
        transformer, fixtures.restricted_model(), contexts, coefficient=0.5
    )
    model.compile(keras.optimizers.Adam(0.01))
    tokens = fixtures.element()[0][0]
    logs = fixtures.fit(model, fixtures.batches().dataset(), epochs=4)
    assert logs["nll"][-1] < logs["nll"][0] - 0.1
    assert logs["imm"][-1] < logs["imm"][0] - 0.02
    expected = transformer(tokens)
    np.testing.assert_array_equal(model(tokens), expected)
    np.testing.assert_array_equal(model((tokens, tf.zeros(4, tf.int32))), expected)
    loaded = fixtures.round_trip(model, tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(tokens), expected)


def test_model_that_was_not_built_before_trains():
    layers = [
        keras.layers.Embedding(fixtures.VOCABULARY, 4),
        keras.layers.Dense(fixtures.VOCABULARY),
    ]
    model = InducedModelMatching(
        keras.Sequential(layers), fixtures.restricted_model(), InBatchContexts()
    )
    model.compile(keras.optimizers.Adam(0.01))
    logs = fixtures.fit(model, fixtures.batches().dataset(), epochs=2)
    assert logs["nll"][1] < logs["nll"][0]


def test_wrapped_model_is_usable_on_its_own(tmp_path):
    model = fixtures.eager(InBatchContexts(), model=fixtures.causal_transformer())
    element = fixtures.element()
    fixtures.step(model, element)
    tokens, expected = element[0][0], model(element[0][0])
    loaded = fixtures.round_trip(model.model, tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(tokens), expected)
    model.model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    np.testing.assert_allclose(exported.serve(tokens), expected, atol=1e-6)


# === Options of compile() and fit() ===


def test_xla_of_the_whole_step_is_refused():
    with pytest.raises(ValueError, match="`jit_compile=True` is not possible"):
        fixtures.wrapper(InBatchContexts()).compile("sgd", jit_compile=True)


@pytest.mark.graph
@pytest.mark.landing
def test_several_steps_per_execution_are_the_same_steps():
    data = fixtures.batches().dataset().take(7)
    weights = []
    for steps in (1, 3):
        model = fixtures.wrapper(InBatchContexts(bank_size=20))
        fixtures.compiled(model, steps_per_execution=steps)
        fixtures.fit(model, data)
        assert int(model.optimizer.iterations) == 7
        weights.append(fixtures.flat_weights(model))
    np.testing.assert_allclose(weights[1], weights[0], atol=1e-6)


@pytest.mark.graph
@pytest.mark.parametrize(
    "separate", [False, pytest.param(True, marks=pytest.mark.landing)]
)
def test_half_precision_takes_nearly_the_same_steps(separate):
    data = fixtures.batches().dataset().take(3)
    moved, losses = {}, {}
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        model = fixtures.eager(
            InBatchContexts(min_count=2, separate_clipping=separate, bank_size=20),
            model=fixtures.language_model(dtype=policy),
            clip_norm=0.1,
        )
        if policy == "mixed_float16":
            assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
        before = fixtures.flat_weights(model)
        losses[policy] = fixtures.fit(model, data)["imm"][0]
        moved[policy] = fixtures.flat_weights(model) - before
    length = np.linalg.norm(moved["float32"])
    assert length > 0.1
    for policy, tolerance in (("mixed_bfloat16", 0.03), ("mixed_float16", 0.01)):
        distance = np.linalg.norm(moved[policy] - moved["float32"])
        assert distance < tolerance * length, policy
        np.testing.assert_allclose(losses[policy], losses["float32"], rtol=tolerance)


@pytest.mark.parametrize("gradient", ["direct", "crosstalk"])
def test_sampled_contexts_in_half_precision(gradient):
    element = fixtures.element()
    moved = []
    for policy in ("float32", "mixed_float16"):
        model = fixtures.eager(
            fixtures.sampled(),
            model=fixtures.language_model(dtype=policy),
            gradient=gradient,
            clip_norm=0.1,
        )
        moved.append(fixtures.step_gradient(model, element))
    distance = np.linalg.norm(moved[1] - moved[0])
    assert distance < 0.01 * np.linalg.norm(moved[0])


@pytest.mark.graph
def test_evaluation_is_that_of_the_language_model():
    data = fixtures.batches().dataset()
    model = fixtures.wrapper(InBatchContexts())
    plain = fixtures.compiled(model.model)
    found = model.evaluate(data, return_dict=True, verbose=0)
    expected = plain.evaluate(data, return_dict=True, verbose=0)
    assert sorted(found) == sorted(expected) == ["loss", "nll", "perplexity"]
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
    as_list = model.evaluate(data, verbose=0)
    np.testing.assert_allclose(as_list, list(found.values()), rtol=1e-6)


@pytest.mark.graph
def test_bits_per_character_are_logged_where_the_language_model_asks():
    data = fixtures.batches().dataset().take(2)
    model = fixtures.eager(
        InBatchContexts(), model=fixtures.language_model(bits_per_character=True)
    )
    logs = fixtures.fit(model, data, validation_data=data)
    for prefix in ("", "val_"):
        bits = logs[f"{prefix}nll"][0] / np.log(2.0)
        assert logs[f"{prefix}bits_per_character"] == [pytest.approx(bits, rel=1e-5)]


@pytest.mark.graph
@pytest.mark.landing
def test_validation_inside_fit_does_not_disturb_training():
    data = fixtures.batches().dataset().take(4)
    weights = []
    for options in ({}, {"validation_data": fixtures.batches(None, 3).dataset()}):
        model = fixtures.eager(
            InBatchContexts(bank_size=20), model=fixtures.language_model(dropout=0.3)
        )
        logs = fixtures.fit(model, data, epochs=2, **options)
        weights.append(fixtures.flat_weights(model))
    np.testing.assert_array_equal(weights[0], weights[1])
    validation = {name for name in logs if name.startswith("val_")}
    assert validation == {"val_loss", "val_nll", "val_perplexity"}


# === Coefficient and start rule ===


def test_coefficient_follows_its_schedule_step_by_step():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay(
        [1, 2], [0.0, 0.7, 2.0]
    )
    model = fixtures.eager(InBatchContexts(), coefficient=schedule)
    found = []
    for element in fixtures.batches().dataset().take(4):
        logs = {name: value[0] for name, value in fixtures.step(model, element).items()}
        found.append((logs["loss"] - logs["nll"]) / logs["imm"])
    np.testing.assert_allclose(found, [0.0, 0.0, 0.7, 2.0], atol=1e-5)


def test_gradient_follows_the_schedule():
    data = list(fixtures.batches().dataset().take(2))
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.0, 0.7])
    scheduled = fixtures.eager(InBatchContexts(), coefficient=schedule)
    constant = fixtures.eager(InBatchContexts(), coefficient=0.7)
    plain = fixtures.compiled(fixtures.language_model(), run_eagerly=True)
    first = fixtures.step_gradient(scheduled, data[0])
    np.testing.assert_allclose(first, fixtures.step_gradient(plain, data[0]), atol=1e-6)
    fixtures.step_gradient(constant, data[0])
    for variable, value in zip(
        constant.trainable_variables, scheduled.trainable_variables, strict=True
    ):
        variable.assign(value)
    # The first step left the same carried state in both.
    np.testing.assert_allclose(
        fixtures.step_gradient(scheduled, data[1]),
        fixtures.step_gradient(constant, data[1]),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("contexts", "options"),
    [
        (InBatchContexts(min_count=2), {"clip_norm": 0.05}),
        (InBatchContexts(min_count=2, separate_clipping=True), {"clip_norm": 0.05}),
        (InBatchContexts(min_count=2, bank_size=20), {}),
        (fixtures.sampled(), {"variant": "authors", "every": 2}),
    ],
)
def test_before_the_start_rule_acts_training_is_plain(contexts, options):
    data = fixtures.batches().dataset().take(2)
    model = fixtures.eager(contexts, coefficient=3.0, **options)
    model.active.assign(0.0)
    plain = fixtures.language_model(clip_norm=options.get("clip_norm"))
    logs = fixtures.fit(model, data)
    assert logs["imm"] == [0.0]
    fixtures.fit(fixtures.compiled(plain, run_eagerly=True), data)
    np.testing.assert_allclose(
        fixtures.flat_weights(model), fixtures.flat_weights(plain), atol=1e-6
    )


def test_a_file_does_not_keep_the_switch(tmp_path):
    model = fixtures.eager(InBatchContexts(min_count=2))
    model.active.assign(0.0)
    best = BestWeights()
    best.capture(model, 1.0, 0)
    model.active.assign(1.0)
    best.restore(model)
    assert float(model.active) == 1.0
    model.active.assign(0.0)
    assert float(fixtures.round_trip(model, tmp_path / "m.keras").active) == 1.0


def test_contexts_may_be_exchanged_between_trainings():
    data = fixtures.batches().dataset().take(1)
    model = fixtures.wrapper(InBatchContexts(min_count=1))
    assert fixtures.fit(model, data)["imm_coverage"] == [1.0]
    model.contexts = InBatchContexts(min_count=10**6)
    assert fixtures.fit(model, data)["imm_coverage"] == [0.0]


# === Mistakes ===


@pytest.mark.parametrize("contexts", [InBatchContexts(min_count=1), fixtures.sampled()])
def test_one_weight_a_row_is_refused(contexts):
    model = fixtures.eager(contexts)
    x, y, _ = fixtures.element()
    with pytest.raises(ValueError, match=r"weight for each target, shape \(4, 10\)"):
        fixtures.step(model, (x, y, np.ones(4, np.float32)))


@pytest.mark.parametrize("contexts", [InBatchContexts, fixtures.sampled])
def test_windows_that_hold_no_short_context_are_refused(contexts):
    model = fixtures.eager(contexts(), restricted=fixtures.restricted_model(4))
    batches = fixtures.batches(None, 4, 2).dataset()
    with pytest.raises(ValueError, match=r"contexts of 3 words .* windows of 2"):
        fixtures.fit(model, batches)


def test_mistakes_get_clear_errors():
    language_model, restricted = fixtures.language_model(), fixtures.restricted_model()
    wrap: Any = InducedModelMatching  # Wrong types are the point.
    with pytest.raises(ValueError, match="`model` must be a Keras model, found str"):
        wrap("model", restricted)
    other = KneserNey(2).fit(fixtures.stream(), fixtures.VOCABULARY + 2)
    with pytest.raises(ValueError, match=r"share one vocabulary, found sizes \[7, 9\]"):
        wrap(language_model, other)
    with pytest.raises(ValueError, match="KneserNey has not been fitted"):
        wrap(language_model, KneserNey(2))
    with pytest.raises(ValueError, match="found an empty list"):
        wrap(language_model, [])
    with pytest.raises(ValueError, match="or a list of pairs"):
        wrap(language_model, (restricted, 0.1))
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="`coefficient` must be finite and not"):
            wrap(language_model, restricted, coefficient=wrong)
    with pytest.raises(ValueError, match="a number or a schedule, found str"):
        wrap(language_model, restricted, coefficient="much")
    with pytest.raises(ValueError, match=r"`contexts` must be .* found str"):
        wrap(language_model, restricted, "in-batch")
    with pytest.raises(ValueError, match="`every` must be an integer >= 1, found 0"):
        wrap(language_model, restricted, every=0)
    with pytest.raises(ValueError, match=r"`gradient` must be .* found 'both'"):
        wrap(language_model, restricted, gradient="both")
    with pytest.raises(ValueError, match=r"`variant` must be .* found 'ours'"):
        wrap(language_model, restricted, variant="ours")
    taken = InBatchContexts()
    first = wrap(language_model, restricted, taken)
    first.contexts = taken
    with pytest.raises(ValueError, match="already belong to another wrapper"):
        wrap(fixtures.language_model(), restricted, taken)
    first.contexts = InBatchContexts()
    free = wrap(fixtures.language_model(), restricted, taken)
    assert free.contexts is taken
    sampled = fixtures.sampled()
    with pytest.raises(ValueError, match="needs Kneser-Ney bigrams"):
        wrap(language_model, fixtures.restricted_model(3), sampled, variant="authors")
    # What failed owns nothing.
    wrap(language_model, restricted, sampled, variant="authors")


def test_terms_that_would_be_left_out_are_refused():
    restricted = fixtures.restricted_model()
    options = {"embedding_width": 3, "units": (4,), "mixture_components": 1}
    with pytest.raises(ValueError, match="AWDLanguageModel also trains on activation"):
        InducedModelMatching(
            AWDLanguageModel(fixtures.VOCABULARY, **options), restricted
        )


def test_steps_in_proportion_to_the_window_stay():
    model = AWDLanguageModel(
        fixtures.VOCABULARY,
        embedding_width=3,
        units=(4,),
        mixture_components=1,
        activation_penalty=0.0,
        temporal_penalty=0.0,
        base_window=10,
    )
    imm = InducedModelMatching(model, fixtures.restricted_model())
    assert float(imm.step_factor(np.zeros((2, 5), np.int32))) == 0.5

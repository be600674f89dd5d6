"""The wrapper as a Keras model: files, checkpoints, other models, fit() options."""

from __future__ import annotations

import zipfile
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RecurrentLanguageModel,
    SampledContexts,
)
from rlm_tf.restricted import KneserNey, NeuralRestrictedModel
from tests.models import imm_fixtures as fixtures


def _element(batch_size=4):
    return next(iter(fixtures.batches(None, batch_size).dataset()))


def _sampled(**options):
    return SampledContexts(fixtures.stream(), **{"k": 2, "window": 4, **options})


def _eager(contexts, **options):
    """The wrapper without graphs: most tests take a few steps, and tracing is slow."""
    return fixtures.compiled(fixtures.wrapper(contexts, **options), run_eagerly=True)


def _fit(model, data, **options):
    return model.fit(data, verbose=0, shuffle=False, **options).history


def _step(model, element):
    return _fit(model, tf.data.Dataset.from_tensors(element))


def _round_trip(model, path):
    model.save(path)
    return keras.saving.load_model(path, safe_mode=True)


# === Files ===


def test_file_keeps_default_arguments_and_the_optimiser(tmp_path):
    model = fixtures.wrapper(InBatchContexts(min_count=2))
    model.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    element = _element()
    _step(model, element)
    loaded = _round_trip(model, tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(element[0][0]), model(element[0][0]))
    assert loaded.coefficients == [0.2]
    assert (loaded.every, loaded.gradient, loaded.variant) == (1, "direct", "paper")
    assert loaded.contexts is None
    with pytest.raises(ValueError, match=r"no contexts\. A loaded model has none"):
        _step(loaded, element)
    loaded.contexts = InBatchContexts(min_count=2)
    # The second step uses Adam's moments, which were in the file.
    _step(loaded, element)
    _step(model, element)
    np.testing.assert_array_equal(
        fixtures.flat_weights(loaded), fixtures.flat_weights(model)
    )


def test_file_keeps_other_arguments(tmp_path):
    schedule = keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.1)
    restricted = [
        (fixtures.restricted_model(2), schedule),
        (fixtures.restricted_model(3), 0.3),
    ]
    model = _eager(
        _sampled(seed=4),
        model=fixtures.language_model(seed=9),
        restricted=restricted,
        every=2,
        gradient="crosstalk",
        clip_norm=0.2,
        loss_scale=3.0,
        name="imm",
    )
    model.active.assign(0.5)
    data = list(fixtures.batches().dataset().take(2))
    _step(model, data[0])
    loaded = _round_trip(model, tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert (loaded.every, loaded.gradient) == (2, "crosstalk")
    assert (loaded.clip_norm, loaded.loss_scale, loaded.name) == (0.2, 3.0, "imm")
    assert float(loaded.coefficients[0](5)) == pytest.approx(0.3)
    assert loaded.coefficients[1] == 0.3
    assert float(loaded.active) == 0.5
    tokens = data[0][0][0]
    np.testing.assert_array_equal(loaded(tokens), model(tokens))
    contexts = [[1, 2], [3, 3]]
    np.testing.assert_array_equal(
        loaded.restricted_models[1].log_probs(contexts),
        model.restricted_models[1].log_probs(contexts),
    )
    loaded.contexts = _sampled(seed=4)
    # Draws depend on the optimiser's step, which was in the file; rows start anew,
    # because the carried state was not.
    (tokens, _), *rest = data[1]
    element = ((tokens, tf.ones(4, tf.int32)), *rest)
    _step(loaded, element)
    _step(model, element)
    np.testing.assert_array_equal(
        fixtures.flat_weights(loaded), fixtures.flat_weights(model)
    )


def test_file_of_the_authors_variant(tmp_path):
    model = _eager(_sampled(), variant="authors")
    loaded = _round_trip(model, tmp_path / "model.keras")
    assert loaded.variant == "authors"
    loaded.contexts = _sampled()
    logs = _step(loaded, _element())
    assert logs["imm"][0] > 0 and "imm_soft" in logs


def test_file_holds_no_training_text(tmp_path):
    text = np.random.default_rng(1).integers(0, fixtures.VOCABULARY, 20_000)
    restricted = fixtures.restricted_model()
    sizes = []
    for length in (500, 20_000):
        contexts = SampledContexts(text[:length], k=2, window=4)
        model = fixtures.wrapper(contexts, restricted=restricted, name="imm")
        model.save(tmp_path / "model.keras")
        with zipfile.ZipFile(tmp_path / "model.keras") as archive:
            content = b"".join(archive.read(name) for name in archive.namelist())
        sizes.append(len(content))
        for dtype in (np.int8, np.int32, np.int64):
            assert text[100:116].astype(dtype).tobytes() not in content
        for separator in (" ", ",", ", "):
            assert separator.join(map(str, text[100:116])).encode() not in content
    # Names that Keras numbers may have one digit more.
    assert abs(sizes[0] - sizes[1]) < 50


# === Checkpoints ===


def test_checkpoint_keeps_states_banks_and_restricted_models(tmp_path):
    restricted = [
        (fixtures.restricted_model(3), 0.2),
        (NeuralRestrictedModel(fixtures.VOCABULARY, 1, seed=2), 0.1),
    ]
    language_model = RecurrentLanguageModel(
        fixtures.VOCABULARY, 8, 2, projection_width=6, jit_loop=False
    )
    model = _eager(
        InBatchContexts(min_count=2, bank_size=30),
        model=language_model,
        restricted=restricted,
    )
    _fit(model, fixtures.batches().dataset().take(2))
    carried = tf.nest.flatten(language_model.carried_states(training=True))
    banks = [v for bank in model.contexts.banks for v in (bank.features, bank.keys)]
    assert all(np.any(np.asarray(v)) for v in (*carried, *banks))

    def variables():
        states = tf.nest.flatten(language_model.carried_states(training=True))
        return [*model.variables, *states, *banks]

    before = [np.array(tf.convert_to_tensor(v)) for v in variables()]
    prediction = model.restricted_models[0].probs([[1, 2]]).numpy()
    path = tf.train.Checkpoint(model=model).save(tmp_path / "checkpoint")
    for variable in (*model.variables, *banks):
        variable.assign(tf.zeros_like(tf.convert_to_tensor(variable)))
    language_model.reset_states(3)
    status = tf.train.Checkpoint(model=model).restore(path)
    status.assert_existing_objects_matched()
    for found, expected in zip(variables(), before, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(found), expected)
    np.testing.assert_array_equal(
        model.restricted_models[0].probs([[1, 2]]), prediction
    )


# === Other language models ===


@pytest.mark.parametrize(
    "contexts", [InBatchContexts(min_count=3), _sampled()], ids=["in-batch", "sampled"]
)
def test_transformer_of_keras_layers_trains(contexts, tmp_path):
    transformer = fixtures.causal_transformer()
    model = InducedModelMatching(
        transformer, fixtures.restricted_model(), contexts, coefficient=0.5
    )
    model.compile(keras.optimizers.Adam(0.01))
    tokens = _element()[0][0]
    logs = _fit(model, fixtures.batches().dataset(), epochs=4)
    assert logs["nll"][-1] < logs["nll"][0] - 0.1
    assert logs["imm"][-1] < logs["imm"][0] - 0.02
    expected = transformer(tokens)
    np.testing.assert_array_equal(model(tokens), expected)
    np.testing.assert_array_equal(model((tokens, tf.zeros(4, tf.int32))), expected)
    loaded = _round_trip(model, tmp_path / "model.keras")
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
    logs = _fit(model, fixtures.batches().dataset(), epochs=2)
    assert logs["nll"][1] < logs["nll"][0]


def test_wrapped_model_is_usable_on_its_own(tmp_path):
    model = _eager(InBatchContexts(), model=fixtures.causal_transformer())
    element = _element()
    _step(model, element)
    tokens, expected = element[0][0], model(element[0][0])
    loaded = _round_trip(model.model, tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(tokens), expected)
    model.model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    np.testing.assert_allclose(exported.serve(tokens), expected, atol=1e-6)


# === Options of compile() and fit() ===


def test_xla_of_the_whole_step_is_refused():
    with pytest.raises(ValueError, match="`jit_compile=True` is not possible"):
        fixtures.wrapper(InBatchContexts()).compile("sgd", jit_compile=True)


def test_several_steps_per_execution_are_the_same_steps():
    data = fixtures.batches().dataset().take(7)
    weights = []
    for steps in (1, 3):
        model = fixtures.wrapper(InBatchContexts(bank_size=20))
        fixtures.compiled(model, steps_per_execution=steps)
        _fit(model, data)
        assert int(model.optimizer.iterations) == 7
        weights.append(fixtures.flat_weights(model))
    np.testing.assert_allclose(weights[1], weights[0], atol=1e-6)


@pytest.mark.parametrize("separate", [False, True])
def test_half_precision_takes_nearly_the_same_steps(separate):
    data = fixtures.batches().dataset().take(3)
    moved, losses = {}, {}
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        model = _eager(
            InBatchContexts(min_count=2, separate_clipping=separate, bank_size=20),
            model=fixtures.language_model(dtype=policy),
            clip_norm=0.1,
        )
        if policy == "mixed_float16":
            assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
        before = fixtures.flat_weights(model)
        losses[policy] = _fit(model, data)["imm"][0]
        moved[policy] = fixtures.flat_weights(model) - before
    length = np.linalg.norm(moved["float32"])
    assert length > 0.1
    for policy, tolerance in (("mixed_bfloat16", 0.03), ("mixed_float16", 0.01)):
        distance = np.linalg.norm(moved[policy] - moved["float32"])
        assert distance < tolerance * length, policy
        np.testing.assert_allclose(losses[policy], losses["float32"], rtol=tolerance)


@pytest.mark.parametrize("gradient", ["direct", "crosstalk"])
def test_sampled_contexts_in_half_precision(gradient):
    element = _element()
    moved = []
    for policy in ("float32", "mixed_float16"):
        model = _eager(
            _sampled(),
            model=fixtures.language_model(dtype=policy),
            gradient=gradient,
            clip_norm=0.1,
        )
        moved.append(fixtures.step_gradient(model, element))
    distance = np.linalg.norm(moved[1] - moved[0])
    assert distance < 0.01 * np.linalg.norm(moved[0])


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


def test_validation_inside_fit_does_not_disturb_training():
    data = fixtures.batches().dataset().take(4)
    weights = []
    for options in ({}, {"validation_data": fixtures.batches(None, 3).dataset()}):
        model = _eager(
            InBatchContexts(bank_size=20), model=fixtures.language_model(dropout=0.3)
        )
        logs = _fit(model, data, epochs=2, **options)
        weights.append(fixtures.flat_weights(model))
    np.testing.assert_array_equal(weights[0], weights[1])
    validation = {name for name in logs if name.startswith("val_")}
    assert validation == {"val_loss", "val_nll", "val_perplexity"}


# === Coefficient and start rule ===


def test_coefficient_follows_its_schedule_step_by_step():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay(
        [1, 2], [0.0, 0.7, 2.0]
    )
    model = _eager(InBatchContexts(), coefficient=schedule)
    found = []
    for element in fixtures.batches().dataset().take(4):
        logs = {name: value[0] for name, value in _step(model, element).items()}
        found.append((logs["loss"] - logs["nll"]) / logs["imm"])
    np.testing.assert_allclose(found, [0.0, 0.0, 0.7, 2.0], atol=1e-5)


def test_gradient_follows_the_schedule():
    data = list(fixtures.batches().dataset().take(2))
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.0, 0.7])
    scheduled = _eager(InBatchContexts(), coefficient=schedule)
    constant = _eager(InBatchContexts(), coefficient=0.7)
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
        (_sampled(), {"variant": "authors", "every": 2}),
    ],
)
def test_before_the_start_rule_acts_training_is_plain(contexts, options):
    data = fixtures.batches().dataset().take(2)
    model = _eager(contexts, coefficient=3.0, **options)
    model.active.assign(0.0)
    plain = fixtures.language_model(clip_norm=options.get("clip_norm"))
    _fit(model, data)
    _fit(fixtures.compiled(plain, run_eagerly=True), data)
    np.testing.assert_allclose(
        fixtures.flat_weights(model), fixtures.flat_weights(plain), atol=1e-6
    )


# === Mistakes ===


def test_mistakes_get_clear_errors():
    language_model, restricted = fixtures.language_model(), fixtures.restricted_model()
    wrap: Any = InducedModelMatching  # Wrong types are the point.
    other = KneserNey(2).fit(fixtures.stream(), fixtures.VOCABULARY + 2)
    with pytest.raises(ValueError, match=r"share one vocabulary, found sizes \[7, 9\]"):
        wrap(language_model, other)
    with pytest.raises(ValueError, match="KneserNey has not been fitted"):
        wrap(language_model, KneserNey(2))
    with pytest.raises(ValueError, match="found an empty list"):
        wrap(language_model, [])
    with pytest.raises(ValueError, match=r"`contexts` must be .* found str"):
        wrap(language_model, restricted, "in-batch")
    with pytest.raises(ValueError, match="`every` must be at least 1, found 0"):
        wrap(language_model, restricted, every=0)
    with pytest.raises(ValueError, match=r"`gradient` must be .* found 'both'"):
        wrap(language_model, restricted, gradient="both")
    with pytest.raises(ValueError, match=r"`variant` must be .* found 'ours'"):
        wrap(language_model, restricted, variant="ours")
    with pytest.raises(ValueError, match="needs Kneser-Ney bigrams"):
        wrap(
            language_model,
            fixtures.restricted_model(3),
            _sampled(),
            variant="authors",
        )

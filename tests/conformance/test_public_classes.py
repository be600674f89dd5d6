"""One row per public Keras class: what every one of them must be able to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import layers, metrics, models, restricted

VOCABULARY = 6
TOKENS = np.array([[1, 2, 3, 1], [0, 5, 4, 2]], np.int32)
STREAM = np.random.default_rng(0).integers(VOCABULARY, size=300)


class Row(NamedTuple):
    """How to make an object with non-default arguments, and how to use it."""

    name: str
    make: Callable[[], Any]
    use: Callable[[Any], tf.Tensor]
    # Of models: what they are called on, and a batch of two examples to train on.
    example: Any = TOKENS
    batch: Any = (
        (TOKENS, np.ones(2, np.int32)),
        np.roll(TOKENS, -1, axis=1),
        np.ones((2, 4), np.float32),
    )


def _kneser_ney() -> restricted.KneserNey:
    model = restricted.KneserNey(3, smoothing="absolute", floor=0.01)
    return model.fit(STREAM, VOCABULARY)


def _language_model() -> models.RecurrentLanguageModel:
    return models.RecurrentLanguageModel(
        VOCABULARY,
        5,
        2,
        embedding_width=4,
        projection_width=4,
        tied=True,
        dropout=0.2,
        initializer_scale=0.5,
        jit_loop=False,
        seed=3,
        clip_norm=2.0,
        loss_scale=7.0,
    )


def _wrapper() -> models.InducedModelMatching:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.3, 10, 0.5)
    return models.InducedModelMatching(
        _language_model(),
        [
            (_kneser_ney(), 0.2),
            (restricted.KneserNey().fit(STREAM, VOCABULARY), schedule),
        ],
        models.InBatchContexts(min_count=2),
        clip_norm=2.0,
        loss_scale=7.0,
    )


def _belief() -> restricted.Belief:
    return restricted.Belief.from_matrix(np.repeat(np.eye(2), 3, axis=1) / 3)


def _policy() -> layers.DiscretePolicy:
    return layers.DiscretePolicy(6, 3, 4, seed=2)


def _reinforce() -> models.ReinforceIMM:
    return models.ReinforceIMM(
        _policy(),
        restricted.TabularModel.from_probs([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]),
        _belief(),
        coefficient=0.4,
        discount=0.8,
        baseline="moving_average",
        horizon=4,
        clip_norm=2.0,
        loss_scale=3.0,
    )


def _bayes() -> restricted.BayesDiscriminant:
    return restricted.BayesDiscriminant((1.0, 2.0, -1.0), 0.3, 0.0, 2.0, (2,))


def _logistic() -> models.LogisticIMM:
    return models.LogisticIMM(
        _bayes(), 3, (2,), ratio=0.4, inverse_bandwidth=0.5, clip_norm=1.0
    )


def _network(features: int) -> keras.Model:
    initializer = keras.initializers.RandomNormal(seed=3)
    dense = keras.layers.Dense(2, kernel_initializer=initializer)
    return keras.Sequential([keras.Input((features,)), dense])


def _neighbours() -> models.NeighborModelMatching:
    return models.NeighborModelMatching(
        _network(3), _bayes(), (2,), ratio=0.4, inverse_bandwidth=0.5, loss_scale=2.0
    )


def _classes() -> restricted.WordClassModel:
    classes = np.arange(VOCABULARY) % 2
    return restricted.WordClassModel(VOCABULARY, 2).fit(STREAM, classes)


def _update(metric: keras.metrics.Metric) -> tf.Tensor:
    metric.reset_state()
    metric.update_state([1.0, 2.0, 4.0], sample_weight=[1.0, 0.0, 1.0])
    return tf.convert_to_tensor(metric.result())


def _count(metric: metrics.Quantiles) -> tf.Tensor:
    metric.reset_state()
    metric.update_state([1, 2, 4])
    return tf.stack(list(metric.result().values()))


def _cell() -> layers.LSTMCell:
    return layers.LSTMCell(4, forget_bias=0.5, kernel_initializer="he_normal")


def _mogrifier(**kwargs: Any) -> layers.MogrifierLSTMCell:
    return layers.MogrifierLSTMCell(
        4,
        3,
        2,
        use_gate_bias=False,
        condition="original",
        cap_input_gate=True,
        bias_initializer=layers.GateBias(layers.Chrono(9.0)),
        seed=5,
        **kwargs,
    )


def _regularized() -> models.RegularizedLanguageModel:
    return models.RegularizedLanguageModel(
        VOCABULARY,
        _mogrifier(state_dropout=0.2),
        2,
        embedding_width=3,
        connections="residual",
        tied=False,
        mixture_components=2,
        input_dropout=0.1,
        layer_dropout=0.2,
        output_dropout=0.3,
        projection_dropout=0.1,
        reset_rate=0.1,
        jit_loop=False,
        seed=3,
        dropout_samples=2,
        clip_norm=2.0,
        loss_scale=7.0,
        l2=0.01,
    )


def _encoder_decoder() -> models.EncoderDecoder:
    return models.EncoderDecoder(
        VOCABULARY,
        _mogrifier(),
        embedding_width=3,
        jit_loop=False,
        seed=2,
        clip_norm=2.0,
        loss_scale=3.0,
        l2=0.1,
    )


def _step(cell: layers.RecurrentCell) -> tf.Tensor:
    states = [tf.fill([2, size], 0.5) for size in cell.state_size]
    return cell(SEQUENCE[:, 0], states)[0]


FEATURES = np.random.default_rng(2).uniform(0, 2, (2, 3)).astype(np.float32)
EXAMPLES = (FEATURES, np.array([0, 1], np.int32), np.ones(2, np.float32))
STATES = np.array([[0, 3, 5, 1], [2, 2, 4, 0]], np.int32)
STEPS = (
    STATES,
    {"actions": STATES % 3, "rewards": np.ones((2, 4), np.float32)},
    np.ones((2, 4), np.float32),
)
SEQUENCE = tf.constant(np.random.default_rng(1).normal(size=(2, 3, 5)), tf.float32)

ROWS = [
    Row("LSTMCell", _cell, lambda c: c(SEQUENCE[:, 0], [tf.ones([2, 4])] * 2)[0]),
    Row("MogrifierLSTMCell", _mogrifier, _step),
    Row(
        "MogrifierCell",
        lambda: layers.MogrifierCell(
            layers.RewiredLSTMCell(4, forget_bias=0.2), 2, 3, seed=1
        ),
        _step,
    ),
    Row(
        "RewiredLSTMCell",
        lambda: layers.RewiredLSTMCell(4, forget_bias=0.5, state_dropout=0.2, seed=1),
        _step,
    ),
    Row(
        "MultiplicativeLSTMCell",
        lambda: layers.MultiplicativeLSTMCell(4, tie_gates=True),
        _step,
    ),
    Row("GRUCell", lambda: layers.GRUCell(4, bias_initializer="ones"), _step),
    Row("ElmanCell", lambda: layers.ElmanCell(4, kernel_initializer="ones"), _step),
    Row(
        "MixtureSoftmaxOutput",
        lambda: layers.MixtureSoftmaxOutput(VOCABULARY, 2, use_bias=False),
        lambda layer: layer(SEQUENCE[..., :4]),
    ),
    Row(
        "MixtureFeatures",
        lambda: layers.MixtureFeatures(2, 3, rate=0.2, seed=4, batch_axis=1),
        lambda layer: layer(SEQUENCE),
    ),
    Row(
        "Recurrent",
        lambda: layers.Recurrent(_cell(), time_major=True, jit_loop=False),
        lambda layer: layer(SEQUENCE)[0],
    ),
    Row(
        "SoftmaxOutput",
        lambda: layers.SoftmaxOutput(
            VOCABULARY, use_bias=True, bias_initializer="random_normal"
        ),
        lambda layer: layer(SEQUENCE),
    ),
    Row(
        "ReplicaDropout",
        lambda: layers.ReplicaDropout(0.4, seed=2),
        lambda layer: layer(SEQUENCE),
    ),
    Row(
        "TokenEmbedding",
        lambda: layers.TokenEmbedding(VOCABULARY, 3, initializer="he_normal"),
        lambda layer: layer(TOKENS),
    ),
    Row("KneserNey", _kneser_ney, lambda model: model.probs(TOKENS[:, :2])),
    Row(
        "NeuralRestrictedModel",
        lambda: restricted.NeuralRestrictedModel(
            VOCABULARY, 2, embedding_width=3, hidden_width=5, seed=4
        ),
        lambda model: model.log_probs(TOKENS[:, :2]),
    ),
    Row("DiscretePolicy", _policy, lambda layer: layer(STATES)),
    Row(
        "TabularModel",
        lambda: restricted.TabularModel.from_probs([[0.5, 0.5], [0.1, 0.9]]),
        lambda model: model.log_probs([1, 0, 1]),
    ),
    Row("Belief", _belief, lambda belief: belief.completions(np.array([1, 0]))[1]),
    Row("WordClassModel", _classes, lambda model: model.log_probs(TOKENS[:, 0])),
    Row("BayesDiscriminant", _bayes, lambda model: model.probs(FEATURES[:, :1])),
    Row(
        "BinnedModel",
        lambda: restricted.BinnedModel(3, 2, 0.0, 2.0, 0.7).fit([0.1, 1.9], [1, 0]),
        lambda model: model.log_probs(FEATURES[:, :1]),
    ),
    Row(
        "NeuralFeatureModel",
        lambda: restricted.NeuralFeatureModel(_network(2)),
        lambda model: model.log_probs(FEATURES[:, :2]),
    ),
    Row("ReinforceIMM", _reinforce, lambda model: model(STATES), STATES, STEPS),
    Row("LogisticIMM", _logistic, lambda model: model(FEATURES), FEATURES, EXAMPLES),
    Row(
        "NeighborModelMatching",
        _neighbours,
        lambda model: model(FEATURES),
        FEATURES,
        EXAMPLES,
    ),
    Row("RecurrentLanguageModel", _language_model, lambda model: model(TOKENS)),
    Row("RegularizedLanguageModel", _regularized, lambda model: model(TOKENS)),
    Row(
        "EncoderDecoder",
        _encoder_decoder,
        lambda model: model((TOKENS, TOKENS)),
        (TOKENS, TOKENS),
        ((TOKENS, TOKENS), np.roll(TOKENS, -1, axis=1)),
    ),
    Row("InducedModelMatching", _wrapper, lambda model: model(TOKENS)),
    Row("Perplexity", lambda: metrics.Perplexity(name="p"), _update),
    Row("BitsPerCharacter", lambda: metrics.BitsPerCharacter(name="b"), _update),
    Row("Quantiles", lambda: metrics.Quantiles("q", (10, 90)), _count),
]


@pytest.fixture(scope="module", params=ROWS, ids=[row.name for row in ROWS])
def made(request) -> tuple[Row, Any, np.ndarray]:
    """A row, its object, and what using it gives."""
    row = request.param
    thing = row.make()
    return row, thing, np.array(row.use(thing))


def test_outputs_are_finite_numbers(made):
    row, _, output = made
    assert output.size and not np.any(np.isnan(output)), row.name


def test_constructor_arguments_are_attributes_and_config_keys(made):
    _, thing, _ = made
    config = thing.get_config()
    for name, parameter in inspect.signature(type(thing).__init__).parameters.items():
        if name in ("self", "contexts", "coefficient") or parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            # Contexts never go into a file; coefficients go with their models.
            continue
        assert name in config, name
        assert hasattr(thing, name) or name == "restricted_model", name


def test_serialised_object_with_the_same_weights_gives_the_same(made):
    row, thing, output = made
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(thing)
    )
    assert type(restored) is type(thing)
    if hasattr(thing, "set_weights"):
        if len(restored.weights) < len(thing.weights):
            row.use(restored)
        restored.set_weights(thing.get_weights())
    np.testing.assert_array_equal(np.array(row.use(restored)), output)


def test_it_runs_in_a_graph(made):
    row, thing, output = made
    if isinstance(thing, keras.metrics.Metric):
        thing.reset_state()
    found = tf.function(lambda: row.use(thing))()
    np.testing.assert_allclose(found, output, rtol=2e-5, atol=1e-6)


def test_a_model_that_holds_it_is_saved_and_loaded_in_safe_mode(made, tmp_path):
    row, thing, output = made
    if not isinstance(thing, keras.Model):
        pytest.skip("only models have files of their own")
    thing.compile(keras.optimizers.SGD(0.1))
    thing.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(np.array(row.use(loaded)), output)


def test_models_are_exported_as_saved_models(made, tmp_path):
    row, thing, output = made
    if not isinstance(thing, keras.Model):
        pytest.skip("only models are exported")
    module = tf.Module()
    module.model = thing

    def spec(example: np.ndarray) -> tf.TensorSpec:
        width = None if example.dtype == np.int32 else example.shape[1]
        return tf.TensorSpec([None, width], example.dtype)

    signature = [tf.nest.map_structure(spec, row.example)]
    module.call = tf.function(lambda t: thing(t), input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "saved"))
    reloaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(reloaded.call(row.example), output, atol=1e-6)


def test_models_train_on_two_replicas(made, two_replicas):
    row, thing, _ = made
    if not isinstance(thing, keras.Model):
        pytest.skip("only models train")
    with two_replicas.scope():
        model = row.make()
        model.compile(keras.optimizers.SGD(0.1))
    data = tf.data.Dataset.from_tensor_slices(row.batch).batch(2)
    history = model.fit(data, epochs=2, verbose=0, shuffle=False).history
    assert np.isfinite(history["loss"]).all()


def test_every_public_class_has_a_row():
    public = {
        name
        for module in (layers, metrics, models, restricted)
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
        and issubclass(getattr(module, name), keras.Layer | keras.metrics.Metric)
        and keras.saving.get_registered_name(getattr(module, name)).startswith(
            "rlm_tf>"
        )
    }
    # Read from files; its round trip is in tests/restricted/test_arpa.py.
    assert public - {row.name for row in ROWS} == {"ArpaModel"}

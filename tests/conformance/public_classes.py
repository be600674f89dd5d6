"""One row per public Keras class: how to make an object of it, and how to use it."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf import layers, metrics, models, restricted
from tests.conformance.bmi_rows import BMI_ROWS
from tests.conformance.distillation_rows import DISTILLATION_ROWS
from tests.conformance.encoder_rows import ENCODER_ROWS
from tests.conformance.latent_rows import LATENT_ROWS
from tests.conformance.row import TOKENS, VOCABULARY, Row
from tests.conformance.text_rows import TEXT_ROWS

STREAM = np.random.default_rng(0).integers(VOCABULARY, size=300)


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


def _transformer() -> models.TransformerLanguageModel:
    return models.TransformerLanguageModel(
        VOCABULARY,
        4,
        2,
        2,
        3,
        dropout=0.2,
        seed=3,
        clip_norm=2.0,
        loss_scale=7.0,
    )


def _keras_hub_model() -> models.KerasHubLanguageModel:
    # Seconds, and only here.
    import keras_hub

    keras.utils.set_random_seed(5)
    backbone = keras_hub.models.GPT2Backbone(
        VOCABULARY,
        num_layers=1,
        num_heads=2,
        hidden_dim=4,
        intermediate_dim=6,
        # Keras' dropout draws on each replica anew.
        dropout=0.0,
        max_sequence_length=16,
    )
    causal_lm = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
    return models.KerasHubLanguageModel(causal_lm, clip_norm=2.0, loss_scale=7.0)


def wrapper(
    contexts: models.InBatchContexts | models.SampledContexts, **options: Any
) -> models.InducedModelMatching:
    """A language model in the wrapper, with two restricted models."""
    schedule = keras.optimizers.schedules.ExponentialDecay(0.3, 10, 0.5)
    return models.InducedModelMatching(
        _language_model(),
        [
            (_kneser_ney(), 0.2),
            (restricted.KneserNey().fit(STREAM, VOCABULARY), schedule),
        ],
        contexts,
        **{"clip_norm": 2.0, "loss_scale": 7.0, **options},
    )


def _wrapper() -> models.InducedModelMatching:
    return wrapper(models.InBatchContexts(min_count=2))


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
EXAMPLES = (FEATURES, np.array([0, 1], np.int32), np.array([1, 0.5], np.float32))
STATES = np.array([[0, 3, 5, 1], [2, 2, 4, 0]], np.int32)
STEPS = (
    STATES,
    {"actions": STATES % 3, "rewards": np.ones((2, 4), np.float32)},
    np.array([[1, 1, 1, 1], [1, 0.5, 0, 0]], np.float32),
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
    Row("TransformerLanguageModel", _transformer, lambda model: model(TOKENS)),
    Row(
        "TransformerBlock",
        lambda: layers.TransformerBlock(5, 1, 3, positions="learnt", dropout=0.2),
        lambda layer: layer(SEQUENCE),
    ),
    Row(
        "EnsembleLanguageModel",
        lambda: models.EnsembleLanguageModel(
            [_language_model(), _transformer()], clip_norm=2.0, loss_scale=7.0
        ),
        lambda model: model(TOKENS),
    ),
    Row("KerasHubLanguageModel", _keras_hub_model, lambda model: model(TOKENS)),
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
    *LATENT_ROWS,
    *BMI_ROWS,
    *ENCODER_ROWS,
    *DISTILLATION_ROWS,
    *TEXT_ROWS,
]

# Models that train, and have files of their own.
MODELS = [
    row
    for row in ROWS
    if hasattr(models, row.name) and issubclass(getattr(models, row.name), keras.Model)
]

"""What is kept in a file for ever: one case for each `.keras` file.

The makers are read by `tests.compatibility.make_files` only; tests load the files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf import layers, models, optimizers, restricted
from tests.compatibility.arrays import FILES
from tests.conformance import bmi_rows, distillation_rows, encoder_rows, text_rows
from tests.conformance.public_classes import ROWS
from tests.conformance.row import VOCABULARY

_RNG = np.random.default_rng(11)
# Few words, so that short contexts come back within a batch.
_TEXT = (_RNG.integers(VOCABULARY, size=(3, 9)) % 4).astype(np.int32)
_TOKENS, _NEXT = _TEXT[:, :-1], _TEXT[:, 1:]
_COUNTS = (_RNG.uniform(size=_TOKENS.shape) < 0.9).astype(np.float32)
_BATCH = ((_TOKENS, np.ones(3, np.int32)), _NEXT, _COUNTS)
_SENTENCES = np.array([[3, 5, 1, -1], [2, 2, 0, 1], [4, 1, -1, -1]], np.int32)
_PAIRS_OF_SENTENCES = type(bmi_rows.PAIRS)(
    *(values[[0, 1, 0]] for values in bmi_rows.PAIRS)
)
_SYMBOLS = np.array([3, 1, 5], np.int32)
_ONES = np.ones(3, np.float32)
_FEATURES = _RNG.uniform(0, 2, (3, 3)).astype(np.float32)
_LABELS = np.array([0, 1, 1], np.int32)
STREAM = (_RNG.integers(VOCABULARY, size=120) % 5).astype(np.int32)
# Tokens of vocabulary files, with characters that are written as escapes.
TOKENS = {
    "words": ["<eos>", "<unk>", "the", "caf\u00e9", "'s", "back\\slash", "a\u200bb"],
    "characters": ["<eos>", " ", "a", "\u00a0", "\\", "\u2028"],
}
WORDS = ["the", "cat", "sat", "on", "mat", "<unk>"]
CONTEXTS = np.array([[1, 2], [0, 4], [3, 3], [5, 0]], np.int32)

_MAKERS = {row.name: row.make for row in ROWS}


class Case(NamedTuple):
    """A model, how it was trained, and what must come out of its file.

    Attributes:
        name: Of its files.
        make: Returns the model.
        batch: What it is trained on.
        example: What it is called on.
        optimizer: Returns the optimiser. A large epsilon keeps what is rounding error
            in a gradient from becoming a step.
        contexts: Of the wrappers that need some after loading.
        complete: Gives a loaded model what else it lacks.
        steps: Steps taken after loading, of which the weights are kept.
        evaluates: Whether what `evaluate` gives is kept. Not of models that draw.
        tolerance: Of weights, outputs and losses.
    """

    name: str
    make: Callable[[], keras.Model]
    batch: Any = _BATCH
    example: Any = _TOKENS
    optimizer: Callable[[], keras.optimizers.Optimizer] = lambda: keras.optimizers.Adam(
        0.01, epsilon=1e-3
    )
    contexts: Callable[[], Any] | None = None
    complete: Callable[[Any], None] | None = None
    steps: int = 1
    evaluates: bool = True
    tolerance: float = 1e-5


def _decayed() -> keras.optimizers.Optimizer:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    return keras.optimizers.SGD(schedule, momentum=0.9, nesterov=True)


def _rectified() -> keras.optimizers.Optimizer:
    return optimizers.RectifiedAdam(0.02, beta_2=0.9, epsilon=1e-3, threshold=5)


def _scaled() -> keras.optimizers.Optimizer:
    return keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.05, momentum=0.5),
        initial_scale=1024.0,
        dynamic_growth_steps=2,
    )


def _small(**options: Any) -> models.RecurrentLanguageModel:
    options = {"initializer_scale": 0.5, "jit_loop": False, "seed": 3, **options}
    return models.RecurrentLanguageModel(VOCABULARY, 4, 1, **options)


def kneser_ney(order: int, **options: Any) -> restricted.KneserNey:
    return restricted.KneserNey(order, **options).fit(STREAM, VOCABULARY)


def _classes() -> restricted.WordClassModel:
    classes = np.arange(VOCABULARY) % 3
    return restricted.WordClassModel(VOCABULARY, 3).fit(STREAM, classes)


def _two_restricted() -> models.InducedModelMatching:
    return models.InducedModelMatching(
        _small(dropout=0.2, clip_norm=5.0, loss_scale=8.0),
        [
            (kneser_ney(2), 0.3),
            (kneser_ney(3, smoothing="absolute", floor=0.01), 0.1),
        ],
        models.InBatchContexts(min_count=2),
        l2=0.01,
    )


def _with_bank() -> models.InducedModelMatching:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.4, 10, 0.5)
    return models.InducedModelMatching(
        _small(dropout=0.1, dropout_samples=2, bits_per_character=True),
        [(_classes(), schedule), (kneser_ney(2), 0.2)],
        _bank(),
        clip_norm=2.0,
        loss_scale=3.0,
    )


def _bank() -> models.InBatchContexts:
    return models.InBatchContexts(min_count=2, bank_size=12, bank_target=3)


def _sampled() -> models.InducedModelMatching:
    return models.InducedModelMatching(
        _small(embedding_width=3),
        kneser_ney(2),
        _samples(),
        coefficient=0.5,
        every=2,
        gradient="crosstalk",
        clip_norm=1.0,
    )


def _samples() -> models.SampledContexts:
    return models.SampledContexts(STREAM, k=2, window=3, seed=4)


def _authors() -> models.InducedModelMatching:
    return models.InducedModelMatching(
        _small(dropout=0.1),
        kneser_ney(2),
        _truncated(),
        every=2,
        variant="authors",
        clip_norm=1.0,
    )


def _truncated() -> models.SampledContexts:
    return models.SampledContexts(STREAM, k=2, window=3, seed=4, truncated=True)


def _around_keras() -> models.InducedModelMatching:
    tokens = keras.Input([None], dtype="int32")
    x = keras.layers.Embedding(
        VOCABULARY, 4, embeddings_initializer=keras.initializers.RandomNormal(seed=1)
    )(tokens)
    x = keras.layers.Conv1D(
        4,
        2,
        padding="causal",
        activation="tanh",
        kernel_initializer=keras.initializers.RandomNormal(seed=2),
    )(x)
    dense = keras.layers.Dense(
        VOCABULARY, kernel_initializer=keras.initializers.RandomNormal(seed=3)
    )
    model = keras.Model(tokens, dense(x))
    return models.InducedModelMatching(
        model, kneser_ney(2), models.InBatchContexts(min_count=1)
    )


def _cell_model(cell: layers.RecurrentCell, **options: Any) -> keras.Model:
    options = {"embedding_width": 4, "connections": "skip", "seed": 3, **options}
    return models.RegularizedLanguageModel(
        VOCABULARY, cell, 1, jit_loop=False, loss_scale=5.0, **options
    )


def _symbols(latents: layers.Latents, **options: Any) -> models.MonteCarloVAE:
    size = int(np.prod(latents.event_shape))
    return models.MonteCarloVAE(
        layers.SymbolEncoder(VOCABULARY, 4, seed=1),
        latents,
        layers.SymbolDecoder(VOCABULARY, size, 4, num_layers=1, embed=True, seed=2),
        seed=4,
        **options,
    )


def _dreg() -> models.MonteCarloVAE:
    latents = layers.NormalLatents(3, trainable_prior=True, seed=3)
    return _symbols(latents, objective="power", alpha=0.5, num_samples=3, l2=0.1)


def _reinforce_vae() -> models.MonteCarloVAE:
    return _symbols(
        layers.CategoricalLatents(2, 3, seed=3),
        estimator="reinforce",
        baseline="moving_average",
        num_samples=2,
        lambda_=0.3,
    )


_STATES = np.array([[0, 3, 5, 1], [2, 2, 4, 0]], np.int32)
_TRAJECTORIES = (
    _STATES,
    {
        "actions": (_STATES % 3).astype(np.int32),
        "rewards": _RNG.uniform(size=(2, 4)).astype(np.float32),
    },
    np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32),
)
_EXAMPLES = (_FEATURES, _LABELS, np.array([1.0, 0.5, 2.0], np.float32))
_SENTENCE_BATCH = (_SENTENCES, np.zeros(3, np.int32), _ONES)
_SYMBOL_BATCH = (_SYMBOLS, np.zeros(3, np.int32), _ONES)
_PAIRS = (_TOKENS, _TOKENS[:, ::-1].copy())

CASES = [
    Case("RecurrentLanguageModel", _MAKERS["RecurrentLanguageModel"]),
    Case(
        "RecurrentLanguageModel_samples",
        lambda: _small(dropout=0.4, dropout_samples=2, bits_per_character=True, l2=0.1),
        optimizer=_decayed,
    ),
    Case(
        "RecurrentLanguageModel_float16",
        lambda: _small(dtype="mixed_float16", clip_norm=3.0, loss_scale=4.0),
        optimizer=_scaled,
        tolerance=2e-3,
    ),
    Case(
        "RegularizedLanguageModel",
        _MAKERS["RegularizedLanguageModel"],
        optimizer=_rectified,
    ),
    Case(
        "RegularizedLanguageModel_lstm",
        lambda: _cell_model(layers.LSTMCell(4, state_dropout=0.2, seed=1), tied=True),
    ),
    Case(
        "RegularizedLanguageModel_rewired",
        lambda: _cell_model(
            layers.MogrifierCell(layers.RewiredLSTMCell(4, forget_bias=0.2), 2, 3)
        ),
    ),
    Case(
        "RegularizedLanguageModel_gru",
        lambda: _cell_model(layers.GRUCell(4), tied=False, mixture_components=2),
    ),
    Case("AWDLanguageModel", bmi_rows.awd),
    Case(
        "BootstrappedMutualInformation",
        bmi_rows.bmi,
        batch=(
            (_TOKENS, np.ones(3, np.int32), _PAIRS_OF_SENTENCES),
            _NEXT,
            _COUNTS,
        ),
        evaluates=False,
    ),
    Case("EnsembleLanguageModel", _MAKERS["EnsembleLanguageModel"]),
    Case("KerasHubLanguageModel", _MAKERS["KerasHubLanguageModel"]),
    Case("TransformerLanguageModel", _MAKERS["TransformerLanguageModel"]),
    Case(
        "MaskedLanguageModel",
        _MAKERS["MaskedLanguageModel"],
        batch=encoder_rows.BATCH,
    ),
    Case(
        "SequenceClassifier",
        _MAKERS["SequenceClassifier"],
        batch=(
            (_TOKENS, _TOKENS % 2),
            np.array([0, 2, 1], np.int32),
            np.array([1, 0.5, 0], np.float32),
        ),
    ),
    Case(
        "InducedFineTuning",
        _MAKERS["InducedFineTuning"],
        batch=encoder_rows.LABELLED,
        contexts=encoder_rows.prefixes,
    ),
    Case(
        "TextClassifier",
        _MAKERS["TextClassifier"],
        batch=text_rows.DOCUMENTS,
        example=text_rows.DOCUMENTS[0][0],
    ),
    Case(
        "StudentOrientedTeacher",
        _MAKERS["StudentOrientedTeacher"],
        batch=distillation_rows.LABELLED,
        example=distillation_rows.VECTORS,
    ),
    Case(
        "Distillation",
        _MAKERS["Distillation"],
        batch=distillation_rows.LABELLED_VECTORS,
        example=distillation_rows.VECTORS,
        complete=lambda model: model.set_teacher(distillation_rows.classifier(3)),
    ),
    Case("StudentOrientedLanguageTeacher", _MAKERS["StudentOrientedLanguageTeacher"]),
    Case(
        "LanguageDistillation",
        _MAKERS["LanguageDistillation"],
        complete=lambda model: model.set_teacher(
            [distillation_rows.language_model(3), distillation_rows.language_model(4)]
        ),
    ),
    Case("Electra", _MAKERS["Electra"], batch=encoder_rows.BATCH, evaluates=False),
    Case(
        "EncoderDecoder",
        _MAKERS["EncoderDecoder"],
        batch=(_PAIRS, _NEXT, _COUNTS),
        example=_PAIRS,
    ),
    Case(
        "InducedModelMatching",
        _two_restricted,
        contexts=lambda: models.InBatchContexts(min_count=2),
    ),
    # The second step is the first that reads the bank.
    Case("InducedModelMatching_bank", _with_bank, contexts=_bank, steps=2),
    Case(
        "InducedModelMatching_sampled",
        _sampled,
        optimizer=_decayed,
        contexts=_samples,
        steps=2,
    ),
    Case("InducedModelMatching_authors", _authors, contexts=_truncated, steps=2),
    Case(
        "InducedModelMatching_keras",
        _around_keras,
        batch=(_TOKENS, _NEXT, _COUNTS),
        contexts=lambda: models.InBatchContexts(min_count=1),
    ),
    Case(
        "MonteCarloVAE",
        _MAKERS["MonteCarloVAE"],
        batch=_SENTENCE_BATCH,
        example=_SENTENCES,
        evaluates=False,
    ),
    Case(
        "MonteCarloVAE_dreg",
        _dreg,
        batch=_SYMBOL_BATCH,
        example=_SYMBOLS,
        evaluates=False,
    ),
    Case(
        "MonteCarloVAE_reinforce",
        _reinforce_vae,
        batch=_SYMBOL_BATCH,
        example=_SYMBOLS,
        evaluates=False,
    ),
    Case(
        "VectorQuantizedVAE",
        _MAKERS["VectorQuantizedVAE"],
        batch=_SENTENCE_BATCH,
        example=_SENTENCES,
    ),
    Case("LogisticIMM", _MAKERS["LogisticIMM"], batch=_EXAMPLES, example=_FEATURES),
    Case(
        "NeighborModelMatching",
        _MAKERS["NeighborModelMatching"],
        batch=_EXAMPLES,
        example=_FEATURES,
        optimizer=_decayed,
    ),
    Case("ReinforceIMM", _MAKERS["ReinforceIMM"], batch=_TRAJECTORIES, example=_STATES),
]

# === Parts ===

_SEQUENCE = _RNG.normal(size=(2, 3, 4)).astype(np.float32)
_LATENTS = _RNG.normal(size=(3, 2, 4)).astype(np.float32)


def _of_cell(cell: layers.RecurrentCell) -> tf.Tensor:
    states = [tf.fill([2, size], 0.5) for size in cell.state_size]
    return cell(tf.constant(_SEQUENCE[:, 0]), states)


def _of_sequence(layer: keras.Layer) -> tf.Tensor:
    return layer(tf.constant(_SEQUENCE))


def _of_restricted(model: restricted.RestrictedModel) -> tf.Tensor:
    return model.log_probs(CONTEXTS[:, : model.context_length])


def _of_features(model: restricted.FeatureModel) -> tf.Tensor:
    return model.log_probs(_FEATURES[:, :1])


def _of_metric(metric: keras.metrics.Metric) -> tf.Tensor:
    metric.reset_state()
    metric.update_state([1, 2, 4])
    return metric.result()


# What a part computes, by the name of its class: of the file, or of a later one.
USES: dict[str, Callable[[Any], Any]] = {
    "ArpaModel": _of_restricted,
    "Belief": lambda belief: belief.completions(np.array([1, 0]))[1],
    "BayesDiscriminant": _of_features,
    "BinnedModel": _of_features,
    "BitsPerCharacter": _of_metric,
    "CategoricalLatents": lambda layer: layer(tf.constant(_FEATURES)),
    "CrossFittedTeacher": lambda teacher: teacher(distillation_rows.VECTORS),
    "DiscretePolicy": lambda layer: layer(_STATES),
    "ElmanCell": _of_cell,
    "GRUCell": _of_cell,
    "KneserNey": _of_restricted,
    "LSTMCell": _of_cell,
    "MixtureFeatures": _of_sequence,
    "MixtureSoftmaxOutput": _of_sequence,
    "MogrifierCell": _of_cell,
    "MogrifierLSTMCell": _of_cell,
    "MultiplicativeLSTMCell": _of_cell,
    "NeuralFeatureModel": lambda model: model.log_probs(_FEATURES[:, :2]),
    "NeuralRestrictedModel": _of_restricted,
    "NormalLatents": lambda layer: layer(tf.constant(_FEATURES)),
    "MineBound": bmi_rows.bound,
    "PairDiscriminator": bmi_rows.score,
    "Perplexity": _of_metric,
    "Quantiles": _of_metric,
    "Recurrent": lambda layer: layer(tf.constant(_SEQUENCE)),
    "ReplicaDropout": lambda layer: layer(tf.constant(_SEQUENCE), training=True),
    "RewiredLSTMCell": _of_cell,
    "SentenceDecoder": lambda layer: layer(tf.constant(_LATENTS), _SENTENCES[:2]),
    "SentenceEncoder": lambda layer: layer(_SENTENCES),
    "SoftmaxOutput": _of_sequence,
    "SymbolDecoder": lambda layer: layer(tf.constant(_LATENTS), _SYMBOLS[:2]),
    "SymbolEncoder": lambda layer: layer(_SYMBOLS),
    "TabularModel": lambda model: model.log_probs([1, 0, 1]),
    "TokenEmbedding": lambda layer: layer(_TOKENS),
    "EncoderEmbedding": lambda layer: layer(_TOKENS),
    "DisentangledEmbedding": lambda layer: layer(_TOKENS),
    "PositionBias": lambda layer: layer(tf.range(3)),
    "DetectionF1": encoder_rows.detect,
    "ExpectedCalibrationError": distillation_rows.calibrate,
    **dict.fromkeys(distillation_rows.STRATEGIES, distillation_rows.distil),
    **dict.fromkeys(("Agreement", "TeacherDivergence"), distillation_rows.compare),
    **dict.fromkeys(
        ("BrierScore", "NegativeLogLikelihood"), distillation_rows.calibrate
    ),
    "DetectionHead": lambda layer: layer(tf.constant(_SEQUENCE[..., [0, 1, 2, 3, 0]])),
    "MaskedTokenHead": lambda layer: layer(
        tf.constant(_SEQUENCE[..., [0, 1, 2, 3, 0]]), tf.ones([VOCABULARY, 5])
    ),
    "TransformerEncoder": lambda layer: layer(_TOKENS),
    "TransformerBlock": lambda layer: layer(
        tf.constant(_SEQUENCE[..., [0, 1, 2, 3, 0]])
    ),
    "VectorQuantizer": lambda layer: layer(tf.constant(_SEQUENCE[:, :2, :2])),
    "WordClassModel": lambda model: model.log_probs(CONTEXTS[:, 0]),
    "TfidfBag": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "AveragedWords": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "ConvolutionalText": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "RecurrentText": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "PooledEncoder": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
}


def parts() -> dict[str, Any]:
    """Returns one object of every public class that is no model, by its name."""
    made = {name: make() for name, make in _MAKERS.items() if name in USES}
    made["ArpaModel"] = restricted.read_arpa(FILES / "bigram.arpa", WORDS, floor=0.01)
    return {name: made[name] for name in USES}

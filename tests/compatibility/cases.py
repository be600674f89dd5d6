"""What is kept in a file for ever: one case for each `.keras` file.

The makers are read by `tests.compatibility.make_files` only; tests load the files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np

from rlm_tf import layers, models, optimizers, restricted
from tests.compatibility import inputs
from tests.conformance import bmi_rows, distillation_rows, encoder_rows, text_rows
from tests.conformance.public_classes import ROWS
from tests.conformance.row import VOCABULARY

# Tokens of vocabulary files, with characters that are written as escapes.
TOKENS = {
    "words": ["<eos>", "<unk>", "the", "caf\u00e9", "'s", "back\\slash", "a\u200bb"],
    "characters": ["<eos>", " ", "a", "\u00a0", "\\", "\u2028"],
}
WORDS = ["the", "cat", "sat", "on", "mat", "<unk>"]

MAKERS = {row.name: row.make for row in ROWS}


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
    batch: Any = inputs.BATCH
    example: Any = inputs.TOKENS
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
    return restricted.KneserNey(order, **options).fit(inputs.STREAM, VOCABULARY)


def _classes() -> restricted.WordClassModel:
    classes = np.arange(VOCABULARY) % 3
    return restricted.WordClassModel(VOCABULARY, 3).fit(inputs.STREAM, classes)


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
    return models.SampledContexts(inputs.STREAM, k=2, window=3, seed=4)


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
    return models.SampledContexts(inputs.STREAM, k=2, window=3, seed=4, truncated=True)


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


CASES = [
    Case("RecurrentLanguageModel", MAKERS["RecurrentLanguageModel"]),
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
        MAKERS["RegularizedLanguageModel"],
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
            (inputs.TOKENS, np.ones(3, np.int32), inputs.PAIRS_OF_SENTENCES),
            inputs.NEXT,
            inputs.COUNTS,
        ),
        evaluates=False,
    ),
    Case("EnsembleLanguageModel", MAKERS["EnsembleLanguageModel"]),
    Case("KerasHubLanguageModel", MAKERS["KerasHubLanguageModel"]),
    Case("TransformerLanguageModel", MAKERS["TransformerLanguageModel"]),
    Case(
        "MaskedLanguageModel",
        MAKERS["MaskedLanguageModel"],
        batch=encoder_rows.BATCH,
    ),
    Case(
        "SequenceClassifier",
        MAKERS["SequenceClassifier"],
        batch=(
            (inputs.TOKENS, inputs.TOKENS % 2),
            np.array([0, 2, 1], np.int32),
            np.array([1, 0.5, 0], np.float32),
        ),
    ),
    Case(
        "InducedFineTuning",
        MAKERS["InducedFineTuning"],
        batch=encoder_rows.LABELLED,
        contexts=encoder_rows.prefixes,
    ),
    Case(
        "TextClassifier",
        MAKERS["TextClassifier"],
        batch=text_rows.DOCUMENTS,
        example=text_rows.DOCUMENTS[0][0],
    ),
    Case(
        "StudentOrientedTeacher",
        MAKERS["StudentOrientedTeacher"],
        batch=distillation_rows.LABELLED,
        example=distillation_rows.VECTORS,
    ),
    Case(
        "Distillation",
        MAKERS["Distillation"],
        batch=distillation_rows.LABELLED_VECTORS,
        example=distillation_rows.VECTORS,
        complete=lambda model: model.set_teacher(distillation_rows.classifier(3)),
    ),
    Case("StudentOrientedLanguageTeacher", MAKERS["StudentOrientedLanguageTeacher"]),
    Case(
        "LanguageDistillation",
        MAKERS["LanguageDistillation"],
        complete=lambda model: model.set_teacher(
            [distillation_rows.language_model(3), distillation_rows.language_model(4)]
        ),
    ),
    Case("Electra", MAKERS["Electra"], batch=encoder_rows.BATCH, evaluates=False),
    Case(
        "EncoderDecoder",
        MAKERS["EncoderDecoder"],
        batch=(inputs.PAIRS, inputs.NEXT, inputs.COUNTS),
        example=inputs.PAIRS,
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
        batch=(inputs.TOKENS, inputs.NEXT, inputs.COUNTS),
        contexts=lambda: models.InBatchContexts(min_count=1),
    ),
    Case(
        "MonteCarloVAE",
        MAKERS["MonteCarloVAE"],
        batch=inputs.SENTENCE_BATCH,
        example=inputs.SENTENCES,
        evaluates=False,
    ),
    Case(
        "MonteCarloVAE_dreg",
        _dreg,
        batch=inputs.SYMBOL_BATCH,
        example=inputs.SYMBOLS,
        evaluates=False,
    ),
    Case(
        "MonteCarloVAE_reinforce",
        _reinforce_vae,
        batch=inputs.SYMBOL_BATCH,
        example=inputs.SYMBOLS,
        evaluates=False,
    ),
    Case(
        "VectorQuantizedVAE",
        MAKERS["VectorQuantizedVAE"],
        batch=inputs.SENTENCE_BATCH,
        example=inputs.SENTENCES,
    ),
    Case(
        "LogisticIMM",
        MAKERS["LogisticIMM"],
        batch=inputs.EXAMPLES,
        example=inputs.FEATURES,
    ),
    Case(
        "NeighborModelMatching",
        MAKERS["NeighborModelMatching"],
        batch=inputs.EXAMPLES,
        example=inputs.FEATURES,
        optimizer=_decayed,
    ),
    Case(
        "ReinforceIMM",
        MAKERS["ReinforceIMM"],
        batch=inputs.TRAJECTORIES,
        example=inputs.STATES,
    ),
]

# === Parts ===

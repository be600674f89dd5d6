"""What the parts in files compute: one use for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf import layers, restricted
from tests.compatibility import inputs
from tests.compatibility.arrays import FILES
from tests.compatibility.cases import MAKERS, WORDS
from tests.conformance import bmi_rows, distillation_rows, encoder_rows, text_rows
from tests.conformance.row import VOCABULARY


def _of_cell(cell: layers.RecurrentCell) -> tf.Tensor:
    states = [tf.fill([2, size], 0.5) for size in cell.state_size]
    return cell(tf.constant(inputs.SEQUENCE[:, 0]), states)


def _of_sequence(layer: keras.Layer) -> tf.Tensor:
    return layer(tf.constant(inputs.SEQUENCE))


def _of_restricted(model: restricted.RestrictedModel) -> tf.Tensor:
    return model.log_probs(inputs.CONTEXTS[:, : model.context_length])


def _of_features(model: restricted.FeatureModel) -> tf.Tensor:
    return model.log_probs(inputs.FEATURES[:, :1])


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
    "CategoricalLatents": lambda layer: layer(tf.constant(inputs.FEATURES)),
    "CrossFittedTeacher": lambda teacher: teacher(distillation_rows.VECTORS),
    "DiscretePolicy": lambda layer: layer(inputs.STATES),
    "ElmanCell": _of_cell,
    "GRUCell": _of_cell,
    "KneserNey": _of_restricted,
    "LSTMCell": _of_cell,
    "MixtureFeatures": _of_sequence,
    "MixtureSoftmaxOutput": _of_sequence,
    "MogrifierCell": _of_cell,
    "MogrifierLSTMCell": _of_cell,
    "MultiplicativeLSTMCell": _of_cell,
    "NeuralFeatureModel": lambda model: model.log_probs(inputs.FEATURES[:, :2]),
    "NeuralRestrictedModel": _of_restricted,
    "NormalLatents": lambda layer: layer(tf.constant(inputs.FEATURES)),
    "MineBound": bmi_rows.bound,
    "PairDiscriminator": bmi_rows.score,
    "Perplexity": _of_metric,
    "Quantiles": _of_metric,
    "Recurrent": lambda layer: layer(tf.constant(inputs.SEQUENCE)),
    "ReplicaDropout": lambda layer: layer(tf.constant(inputs.SEQUENCE), training=True),
    "RewiredLSTMCell": _of_cell,
    "SentenceDecoder": lambda layer: layer(
        tf.constant(inputs.LATENTS), inputs.SENTENCES[:2]
    ),
    "SentenceEncoder": lambda layer: layer(inputs.SENTENCES),
    "SoftmaxOutput": _of_sequence,
    "SymbolDecoder": lambda layer: layer(
        tf.constant(inputs.LATENTS), inputs.SYMBOLS[:2]
    ),
    "SymbolEncoder": lambda layer: layer(inputs.SYMBOLS),
    "TabularModel": lambda model: model.log_probs([1, 0, 1]),
    "TokenEmbedding": lambda layer: layer(inputs.TOKENS),
    "EncoderEmbedding": lambda layer: layer(inputs.TOKENS),
    "DisentangledEmbedding": lambda layer: layer(inputs.TOKENS),
    "PositionBias": lambda layer: layer(tf.range(3)),
    "DetectionF1": encoder_rows.detect,
    "ExpectedCalibrationError": distillation_rows.calibrate,
    **dict.fromkeys(distillation_rows.STRATEGIES, distillation_rows.distil),
    **dict.fromkeys(("Agreement", "TeacherDivergence"), distillation_rows.compare),
    **dict.fromkeys(
        ("BrierScore", "NegativeLogLikelihood"), distillation_rows.calibrate
    ),
    "DetectionHead": lambda layer: layer(
        tf.constant(inputs.SEQUENCE[..., [0, 1, 2, 3, 0]])
    ),
    "MaskedTokenHead": lambda layer: layer(
        tf.constant(inputs.SEQUENCE[..., [0, 1, 2, 3, 0]]), tf.ones([VOCABULARY, 5])
    ),
    "TransformerEncoder": lambda layer: layer(inputs.TOKENS),
    "TransformerBlock": lambda layer: layer(
        tf.constant(inputs.SEQUENCE[..., [0, 1, 2, 3, 0]])
    ),
    "VectorQuantizer": lambda layer: layer(tf.constant(inputs.SEQUENCE[:, :2, :2])),
    "WordClassModel": lambda model: model.log_probs(inputs.CONTEXTS[:, 0]),
    "TfidfBag": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "AveragedWords": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "ConvolutionalText": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "RecurrentText": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
    "PooledEncoder": lambda layer: layer(text_rows.DOCUMENTS[0][0]),
}


def parts() -> dict[str, Any]:
    """Returns one object of every public class that is no model, by its name."""
    made = {name: make() for name, make in MAKERS.items() if name in USES}
    made["ArpaModel"] = restricted.read_arpa(FILES / "bigram.arpa", WORDS, floor=0.01)
    return {name: made[name] for name in USES}

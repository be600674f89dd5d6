"""Strategies of distillation: layers and losses of Keras' `Distiller` at once."""

from rlm_tf.distillation.contrast import ContrastiveRepresentation
from rlm_tf.distillation.outputs import (
    DIST,
    KD,
    DecoupledKD,
    GeneralisedJSD,
    ReverseKD,
    StandardisedKD,
)
from rlm_tf.distillation.projections import (
    ActivationBoundary,
    CorrelationCongruence,
    FitNet,
    VariationalInformation,
)
from rlm_tf.distillation.relations import (
    AttentionTransfer,
    NeuronSelectivity,
    ProbabilisticTransfer,
    RelationalKD,
    SimilarityPreserving,
)
from rlm_tf.distillation.strategy import Strategy

__all__ = [
    "DIST",
    "KD",
    "ActivationBoundary",
    "AttentionTransfer",
    "ContrastiveRepresentation",
    "CorrelationCongruence",
    "DecoupledKD",
    "FitNet",
    "GeneralisedJSD",
    "NeuronSelectivity",
    "ProbabilisticTransfer",
    "RelationalKD",
    "ReverseKD",
    "SimilarityPreserving",
    "StandardisedKD",
    "Strategy",
    "VariationalInformation",
]

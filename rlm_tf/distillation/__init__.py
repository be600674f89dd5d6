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
from rlm_tf.distillation.recipes import Recipe, recipe
from rlm_tf.distillation.relations import (
    AttentionTransfer,
    NeuronSelectivity,
    ProbabilisticTransfer,
    RelationalKD,
    SimilarityPreserving,
)
from rlm_tf.distillation.strategy import Strategy
from rlm_tf.distillation.taught import (
    FactorTransfer,
    SelfSupervised,
    TaughtStrategy,
    Views,
)

__all__ = [
    "DIST",
    "KD",
    "ActivationBoundary",
    "AttentionTransfer",
    "ContrastiveRepresentation",
    "CorrelationCongruence",
    "DecoupledKD",
    "FactorTransfer",
    "FitNet",
    "GeneralisedJSD",
    "NeuronSelectivity",
    "ProbabilisticTransfer",
    "Recipe",
    "RelationalKD",
    "ReverseKD",
    "SelfSupervised",
    "SimilarityPreserving",
    "StandardisedKD",
    "Strategy",
    "TaughtStrategy",
    "VariationalInformation",
    "Views",
    "recipe",
]

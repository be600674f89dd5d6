"""Strategies without projections, for features: maps, and relations in the batch."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.distillation.strategy import Strategy
from rlm_tf.objectives import feature_distillation as features
from rlm_tf.typing import LossOutput


@keras.saving.register_keras_serializable("rlm_tf")
class AttentionTransfer(Strategy):
    """AT, of maps; see `objectives.feature_distillation.attention`.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        **kwargs: Of `keras.Layer`.
    """

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return features.attention(teacher, student)


@keras.saving.register_keras_serializable("rlm_tf")
class NeuronSelectivity(Strategy):
    """NST, of maps; see `objectives.feature_distillation.neuron_selectivity`.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        **kwargs: Of `keras.Layer`.
    """

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return features.neuron_selectivity(teacher, student)


@keras.saving.register_keras_serializable("rlm_tf")
class SimilarityPreserving(Strategy):
    """SP; see `objectives.feature_distillation.similarity`.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        **kwargs: Of `keras.Layer`.
    """

    across = True

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return features.similarity(teacher, student)


@keras.saving.register_keras_serializable("rlm_tf")
class RelationalKD(Strategy):
    """RKD; see `objectives.feature_distillation.relational`.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        **kwargs: Of `keras.Layer`.
    """

    across = True

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return features.relational(teacher, student)


@keras.saving.register_keras_serializable("rlm_tf")
class ProbabilisticTransfer(Strategy):
    """PKT; see `objectives.feature_distillation.probabilistic`.

    Args:
        teacher_layer_name: See `Strategy`.
        student_layer_name: See `Strategy`.
        **kwargs: Of `keras.Layer`.
    """

    across = True

    def losses_of(self, teacher: Any, student: Any, **context: Any) -> LossOutput:
        return features.probabilistic(teacher, student)

"""Optimisers and schedules that Keras lacks."""

from rlm_tf.optimizers.decoupled_optimizer import DecoupledOptimizer
from rlm_tf.optimizers.linear_decay import LinearDecay
from rlm_tf.optimizers.rectified_adam import RectifiedAdam
from rlm_tf.optimizers.row_adam import RowAdam

__all__ = ["DecoupledOptimizer", "LinearDecay", "RectifiedAdam", "RowAdam"]

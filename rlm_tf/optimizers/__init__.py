"""Optimisers that Keras lacks."""

from rlm_tf.optimizers.decoupled_optimizer import DecoupledOptimizer
from rlm_tf.optimizers.rectified_adam import RectifiedAdam

__all__ = ["DecoupledOptimizer", "RectifiedAdam"]

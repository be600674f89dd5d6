"""Optimisers that Keras lacks."""

from rlm_tf.optimizers.rectified_adam import RectifiedAdam

__all__ = ["RectifiedAdam"]

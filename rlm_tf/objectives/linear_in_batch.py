"""Old names of what is in `rlm_tf.objectives.cross_entropy_with_imm`."""

from rlm_tf.objectives.cross_entropy_with_imm import (
    JointLoss,
    cross_entropy_with_imm,
    linear_cross_entropy_with_imm,
)

joint_of_logits = cross_entropy_with_imm
linear_joint_cross_entropy = linear_cross_entropy_with_imm

__all__ = ["JointLoss", "joint_of_logits", "linear_joint_cross_entropy"]

"""Networks for small images, with the features that distillation asks for.

Functional models whose outputs are logits. The layers `stem`, `stage1`, `stage2`, ...
and `pooled` give what the methods of the thesis compare (f0, f1, ..., f4 there), and
`stage1_pre`, ... what an activation is taken of there.
"""

from rlm_tf.models.image.resnets import resnet, small_resnet, wide_resnet
from rlm_tf.models.image.shufflenet import shufflenet_v2

__all__ = ["resnet", "shufflenet_v2", "small_resnet", "wide_resnet"]

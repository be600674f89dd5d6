"""Models of the next word given a short context."""

from rlm_tf.restricted.arpa import ArpaModel, read_arpa, write_arpa
from rlm_tf.restricted.kneser_ney import KneserNey
from rlm_tf.restricted.neural import NeuralRestrictedModel
from rlm_tf.restricted.restricted_model import RestrictedModel

__all__ = [
    "ArpaModel",
    "KneserNey",
    "NeuralRestrictedModel",
    "RestrictedModel",
    "read_arpa",
    "write_arpa",
]

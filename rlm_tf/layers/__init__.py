"""Recurrent cells, the loop that runs them, embedding and output layers, policies."""

from rlm_tf.layers.carried_state import CarriedState
from rlm_tf.layers.discrete_policy import DiscretePolicy
from rlm_tf.layers.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent import Recurrent
from rlm_tf.layers.recurrent_cell import RecurrentCell
from rlm_tf.layers.replica_dropout import ReplicaDropout
from rlm_tf.layers.softmax_output import SoftmaxOutput
from rlm_tf.layers.token_embedding import TokenEmbedding

__all__ = [
    "CarriedState",
    "DiscretePolicy",
    "LSTMCell",
    "Recurrent",
    "RecurrentCell",
    "ReplicaDropout",
    "SoftmaxOutput",
    "TokenEmbedding",
]

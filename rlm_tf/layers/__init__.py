"""Recurrent cells, the loop that runs them, embedding and output layers, policies."""

from rlm_tf.layers.carried_state import CarriedState
from rlm_tf.layers.discrete_policy import DiscretePolicy
from rlm_tf.layers.elman_cell import ElmanCell
from rlm_tf.layers.gate_bias import Chrono, GateBias
from rlm_tf.layers.gru_cell import GRUCell
from rlm_tf.layers.hidden_state_cell import HiddenStateCell
from rlm_tf.layers.lstm_cell import LSTMCell
from rlm_tf.layers.mixture_softmax_output import MixtureFeatures, MixtureSoftmaxOutput
from rlm_tf.layers.mogrifier_cell import MogrifierCell, MogrifierLSTMCell
from rlm_tf.layers.multiplicative_lstm_cell import MultiplicativeLSTMCell
from rlm_tf.layers.recurrent import Recurrent
from rlm_tf.layers.recurrent_cell import RecurrentCell
from rlm_tf.layers.replica_dropout import ReplicaDropout
from rlm_tf.layers.rewired_lstm_cell import RewiredLSTMCell
from rlm_tf.layers.softmax_output import SoftmaxOutput
from rlm_tf.layers.token_embedding import TokenEmbedding

__all__ = [
    "CarriedState",
    "Chrono",
    "DiscretePolicy",
    "ElmanCell",
    "GRUCell",
    "GateBias",
    "HiddenStateCell",
    "LSTMCell",
    "MixtureFeatures",
    "MixtureSoftmaxOutput",
    "MogrifierCell",
    "MogrifierLSTMCell",
    "MultiplicativeLSTMCell",
    "Recurrent",
    "RecurrentCell",
    "ReplicaDropout",
    "RewiredLSTMCell",
    "SoftmaxOutput",
    "TokenEmbedding",
]

"""Recurrent cells and their loop, embeddings, outputs, latents, policies."""

from rlm_tf.layers.carried_state import CarriedState
from rlm_tf.layers.categorical_latents import CategoricalLatents
from rlm_tf.layers.discrete_policy import DiscretePolicy
from rlm_tf.layers.elman_cell import ElmanCell
from rlm_tf.layers.gate_bias import Chrono, GateBias
from rlm_tf.layers.gru_cell import GRUCell
from rlm_tf.layers.hidden_state_cell import HiddenStateCell
from rlm_tf.layers.latents import Latents
from rlm_tf.layers.lstm_cell import LSTMCell
from rlm_tf.layers.mixture_softmax_output import MixtureFeatures, MixtureSoftmaxOutput
from rlm_tf.layers.mogrifier_cell import MogrifierCell, MogrifierLSTMCell
from rlm_tf.layers.multiplicative_lstm_cell import MultiplicativeLSTMCell
from rlm_tf.layers.normal_latents import NormalLatents
from rlm_tf.layers.recurrent import Recurrent
from rlm_tf.layers.recurrent_cell import RecurrentCell
from rlm_tf.layers.replica_dropout import ReplicaDropout
from rlm_tf.layers.rewired_lstm_cell import RewiredLSTMCell
from rlm_tf.layers.sentence_decoder import SentenceDecoder
from rlm_tf.layers.sentence_encoder import SentenceEncoder
from rlm_tf.layers.softmax_output import SoftmaxOutput
from rlm_tf.layers.symbol_coders import SymbolDecoder, SymbolEncoder
from rlm_tf.layers.token_embedding import TokenEmbedding
from rlm_tf.layers.vector_quantizer import VectorQuantizer

__all__ = [
    "CarriedState",
    "CategoricalLatents",
    "Chrono",
    "DiscretePolicy",
    "ElmanCell",
    "GRUCell",
    "GateBias",
    "HiddenStateCell",
    "LSTMCell",
    "Latents",
    "MixtureFeatures",
    "MixtureSoftmaxOutput",
    "MogrifierCell",
    "MogrifierLSTMCell",
    "MultiplicativeLSTMCell",
    "NormalLatents",
    "Recurrent",
    "RecurrentCell",
    "ReplicaDropout",
    "RewiredLSTMCell",
    "SentenceDecoder",
    "SentenceEncoder",
    "SoftmaxOutput",
    "SymbolDecoder",
    "SymbolEncoder",
    "TokenEmbedding",
    "VectorQuantizer",
]

"""Recurrent cells and their loop, embeddings, outputs, latents, policies."""

from rlm_tf.layers.basic.discrete_policy import DiscretePolicy
from rlm_tf.layers.basic.pair_discriminator import PairDiscriminator, pair_features
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.layers.latent.categorical_latents import CategoricalLatents
from rlm_tf.layers.latent.latents import Latents
from rlm_tf.layers.latent.normal_latents import NormalLatents
from rlm_tf.layers.latent.sentence_decoder import SentenceDecoder
from rlm_tf.layers.latent.sentence_encoder import SentenceEncoder
from rlm_tf.layers.latent.symbol_coders import SymbolDecoder, SymbolEncoder
from rlm_tf.layers.latent.vector_quantizer import VectorQuantizer
from rlm_tf.layers.output.detection_head import DetectionHead
from rlm_tf.layers.output.masked_token_head import MaskedTokenHead
from rlm_tf.layers.output.mixture_softmax_output import (
    MixtureFeatures,
    MixtureSoftmaxOutput,
)
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.recurrent.carried_state import CarriedState
from rlm_tf.layers.recurrent.elman_cell import ElmanCell
from rlm_tf.layers.recurrent.gate_bias import Chrono, GateBias
from rlm_tf.layers.recurrent.gru_cell import GRUCell
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent.mogrifier_cell import MogrifierCell, MogrifierLSTMCell
from rlm_tf.layers.recurrent.multiplicative_lstm_cell import MultiplicativeLSTMCell
from rlm_tf.layers.recurrent.recurrent import Recurrent
from rlm_tf.layers.recurrent.recurrent_cell import RecurrentCell
from rlm_tf.layers.recurrent.rewired_lstm_cell import RewiredLSTMCell
from rlm_tf.layers.text.averaged_words import AveragedWords
from rlm_tf.layers.text.convolutional_text import ConvolutionalText
from rlm_tf.layers.text.recurrent_text import RecurrentText
from rlm_tf.layers.text.seed_matcher import MatchedTexts, SeedMatcher
from rlm_tf.layers.text.tfidf_bag import TfidfBag
from rlm_tf.layers.text.word_deletion import WordDeletion
from rlm_tf.layers.transformer.admin import admin_profile, admin_scale
from rlm_tf.layers.transformer.disentangled_embedding import DisentangledEmbedding
from rlm_tf.layers.transformer.encoder_embedding import EncoderEmbedding
from rlm_tf.layers.transformer.pooled_encoder import PooledEncoder
from rlm_tf.layers.transformer.position_bias import PositionBias
from rlm_tf.layers.transformer.position_buckets import relative_position_buckets
from rlm_tf.layers.transformer.transformer_block import TransformerBlock
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder

__all__ = [
    "AveragedWords",
    "CarriedState",
    "CategoricalLatents",
    "Chrono",
    "ConvolutionalText",
    "DetectionHead",
    "DiscretePolicy",
    "DisentangledEmbedding",
    "ElmanCell",
    "EncoderEmbedding",
    "GRUCell",
    "GateBias",
    "HiddenStateCell",
    "LSTMCell",
    "Latents",
    "MaskedTokenHead",
    "MatchedTexts",
    "MixtureFeatures",
    "MixtureSoftmaxOutput",
    "MogrifierCell",
    "MogrifierLSTMCell",
    "MultiplicativeLSTMCell",
    "NormalLatents",
    "PairDiscriminator",
    "PooledEncoder",
    "PositionBias",
    "Recurrent",
    "RecurrentCell",
    "RecurrentText",
    "ReplicaDropout",
    "RewiredLSTMCell",
    "SeedMatcher",
    "SentenceDecoder",
    "SentenceEncoder",
    "SoftmaxOutput",
    "SymbolDecoder",
    "SymbolEncoder",
    "TfidfBag",
    "TokenEmbedding",
    "TransformerBlock",
    "TransformerEncoder",
    "VectorQuantizer",
    "WordDeletion",
    "admin_profile",
    "admin_scale",
    "pair_features",
    "relative_position_buckets",
]

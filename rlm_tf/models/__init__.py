"""Keras models, one for each objective."""

from rlm_tf.models.encoder_decoder import EncoderDecoder
from rlm_tf.models.in_batch_contexts import InBatchContexts
from rlm_tf.models.induced_model_matching import InducedModelMatching
from rlm_tf.models.logistic_imm import LogisticIMM, published_ratio
from rlm_tf.models.logistic_runs import (
    LogisticWeights,
    fit_logistic_runs,
    logistic_logits,
)
from rlm_tf.models.monte_carlo_vae import MonteCarloVAE
from rlm_tf.models.neighbor_matching import NeighborModelMatching
from rlm_tf.models.objective_model import ObjectiveModel
from rlm_tf.models.parameter_budget import count_parameters, width_for_budget
from rlm_tf.models.recurrent_language_model import RecurrentLanguageModel
from rlm_tf.models.regularized_language_model import RegularizedLanguageModel
from rlm_tf.models.reinforce_imm import ReinforceIMM, published_reinforce_ratio
from rlm_tf.models.reinforce_runs import ReinforceRuns
from rlm_tf.models.sampled_contexts import SampledContexts
from rlm_tf.models.term import (
    Term,
    TermLoss,
    TermSpec,
    coefficient_from_ratio,
    ratio_from_coefficient,
)
from rlm_tf.models.vector_quantized_vae import VectorQuantizedVAE

__all__ = [
    "EncoderDecoder",
    "InBatchContexts",
    "InducedModelMatching",
    "LogisticIMM",
    "LogisticWeights",
    "MonteCarloVAE",
    "NeighborModelMatching",
    "ObjectiveModel",
    "RecurrentLanguageModel",
    "RegularizedLanguageModel",
    "ReinforceIMM",
    "ReinforceRuns",
    "SampledContexts",
    "Term",
    "TermLoss",
    "TermSpec",
    "VectorQuantizedVAE",
    "coefficient_from_ratio",
    "count_parameters",
    "fit_logistic_runs",
    "logistic_logits",
    "published_ratio",
    "published_reinforce_ratio",
    "ratio_from_coefficient",
    "width_for_budget",
]

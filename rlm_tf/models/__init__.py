"""Keras models, one for each objective.

Importing this package registers every class of the library that the file of a model may
hold, layers, metrics and optimisers included.
"""

# What models here may be given, and no module here needs.
import rlm_tf.layers
import rlm_tf.metrics
import rlm_tf.optimizers
import rlm_tf.restricted  # noqa: F401
from rlm_tf.batched_runs.logistic_runs import (
    LogisticWeights,
    fit_logistic_runs,
    logistic_logits,
)
from rlm_tf.batched_runs.reinforce_runs import ReinforceRuns
from rlm_tf.models.bmi.bootstrapped_mutual_information import (
    BootstrappedMutualInformation,
)
from rlm_tf.models.distillation.calibrated import calibrated_teacher
from rlm_tf.models.distillation.cross_fitted import CrossFittedTeacher, folds_of
from rlm_tf.models.distillation.distillation import Distillation
from rlm_tf.models.distillation.language_distillation import LanguageDistillation
from rlm_tf.models.distillation.lipschitz_constants import lipschitz_constants
from rlm_tf.models.distillation.student_oriented_language_teacher import (
    StudentOrientedLanguageTeacher,
)
from rlm_tf.models.distillation.student_oriented_teacher import (
    StudentOrientedTeacher,
)
from rlm_tf.models.distillation.teacher_predictions import TeacherPredictions
from rlm_tf.models.encoders.electra import Electra
from rlm_tf.models.encoders.generator_encoder import generator_encoder
from rlm_tf.models.encoders.induced_fine_tuning import InducedFineTuning
from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel
from rlm_tf.models.encoders.prefix_predictor import PrefixPredictor
from rlm_tf.models.encoders.published_bert import PublishedBert, read_bert
from rlm_tf.models.encoders.sampled_prefixes import SampledPrefixes
from rlm_tf.models.encoders.sequence_classifier import (
    SequenceClassifier,
    layerwise_decay,
)
from rlm_tf.models.imm.in_batch_contexts import InBatchContexts
from rlm_tf.models.imm.induced_model_matching import InducedModelMatching
from rlm_tf.models.imm.logistic_imm import LogisticIMM, published_ratio
from rlm_tf.models.imm.neighbor_matching import NeighborModelMatching
from rlm_tf.models.imm.own_contexts import OwnContexts
from rlm_tf.models.imm.sampled_contexts import SampledContexts
from rlm_tf.models.language.awd_language_model import AWDLanguageModel
from rlm_tf.models.language.encoder_decoder import EncoderDecoder
from rlm_tf.models.language.ensemble_language_model import EnsembleLanguageModel
from rlm_tf.models.language.keras_hub_language_model import KerasHubLanguageModel
from rlm_tf.models.language.parameter_budget import count_parameters, width_for_budget
from rlm_tf.models.language.recurrent_language_model import RecurrentLanguageModel
from rlm_tf.models.language.regularized_language_model import RegularizedLanguageModel
from rlm_tf.models.language.transformer_language_model import TransformerLanguageModel
from rlm_tf.models.latent.monte_carlo_vae import MonteCarloVAE
from rlm_tf.models.latent.vector_quantized_vae import VectorQuantizedVAE
from rlm_tf.models.policy.reinforce_imm import ReinforceIMM, published_reinforce_ratio
from rlm_tf.models.text_classifiers.kinds import word_classifier
from rlm_tf.models.text_classifiers.paraphraser import T5Paraphraser
from rlm_tf.models.text_classifiers.seed_outcome import SeedOutcome
from rlm_tf.models.text_classifiers.seed_supervision import SeedSupervision
from rlm_tf.models.text_classifiers.text_classifier import TextClassifier
from rlm_tf.models.text_classifiers.text_reader import TextReader
from rlm_tf.models.text_classifiers.word_replacement import replace_words
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import (
    Term,
    TermLoss,
    TermSpec,
    coefficient_from_ratio,
    ratio_from_coefficient,
)

__all__ = [
    "AWDLanguageModel",
    "BootstrappedMutualInformation",
    "CrossFittedTeacher",
    "Distillation",
    "Electra",
    "EncoderDecoder",
    "EnsembleLanguageModel",
    "InBatchContexts",
    "InducedFineTuning",
    "InducedModelMatching",
    "KerasHubLanguageModel",
    "LanguageDistillation",
    "LogisticIMM",
    "LogisticWeights",
    "MaskedLanguageModel",
    "MonteCarloVAE",
    "NeighborModelMatching",
    "ObjectiveModel",
    "OwnContexts",
    "PrefixPredictor",
    "PublishedBert",
    "RecurrentLanguageModel",
    "RegularizedLanguageModel",
    "ReinforceIMM",
    "ReinforceRuns",
    "SampledContexts",
    "SampledPrefixes",
    "SeedOutcome",
    "SeedSupervision",
    "SequenceClassifier",
    "StudentOrientedLanguageTeacher",
    "StudentOrientedTeacher",
    "T5Paraphraser",
    "TeacherPredictions",
    "Term",
    "TermLoss",
    "TermSpec",
    "TextClassifier",
    "TextReader",
    "TransformerLanguageModel",
    "VectorQuantizedVAE",
    "calibrated_teacher",
    "coefficient_from_ratio",
    "count_parameters",
    "fit_logistic_runs",
    "folds_of",
    "generator_encoder",
    "layerwise_decay",
    "lipschitz_constants",
    "logistic_logits",
    "published_ratio",
    "published_reinforce_ratio",
    "ratio_from_coefficient",
    "read_bert",
    "replace_words",
    "width_for_budget",
    "word_classifier",
]

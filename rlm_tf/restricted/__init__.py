"""Models of the next word, or of an action or a label, given a short context."""

from rlm_tf.restricted.features.bayes_discriminant import BayesDiscriminant
from rlm_tf.restricted.features.binned import BinnedModel
from rlm_tf.restricted.features.feature_model import FeatureModel
from rlm_tf.restricted.features.neural_features import NeuralFeatureModel
from rlm_tf.restricted.neural import NeuralRestrictedModel
from rlm_tf.restricted.ngrams.arpa import ArpaModel, read_arpa, write_arpa
from rlm_tf.restricted.ngrams.kneser_ney import KneserNey
from rlm_tf.restricted.pomdp.alpha_vector_policy import alpha_vector_policy, utilities
from rlm_tf.restricted.pomdp.alpha_vectors import QMDP, FastInformedBound
from rlm_tf.restricted.pomdp.belief import Belief
from rlm_tf.restricted.restricted_model import RestrictedModel
from rlm_tf.restricted.tabular import TabularModel
from rlm_tf.restricted.word_classes import WordClassModel, word_classes

__all__ = [
    "QMDP",
    "ArpaModel",
    "BayesDiscriminant",
    "Belief",
    "BinnedModel",
    "FastInformedBound",
    "FeatureModel",
    "KneserNey",
    "NeuralFeatureModel",
    "NeuralRestrictedModel",
    "RestrictedModel",
    "TabularModel",
    "WordClassModel",
    "alpha_vector_policy",
    "read_arpa",
    "utilities",
    "word_classes",
    "write_arpa",
]

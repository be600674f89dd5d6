"""Labels from rules: seed words, deletion, selection, estimates of noise."""

from rlm_tf.labelling.accuracy import (
    Accuracy,
    ToLabel,
    accuracy_from_labels,
    choose_to_label,
)
from rlm_tf.labelling.agreement import SeedAgreement, seed_agreement
from rlm_tf.labelling.deletion import (
    best_deletion_ratio,
    deletion_counts,
    fixed_count_deletion_rate,
    seed_deletion_rate,
)
from rlm_tf.labelling.intervals import binomial_interval
from rlm_tf.labelling.noise import ConfidentJoint, confident_joint
from rlm_tf.labelling.rule_statistics import (
    RuleStatistics,
    SeedStatistics,
    Spread,
    rule_statistics,
    seed_statistics,
)
from rlm_tf.labelling.seed_pieces import SeedPieces, seed_pieces
from rlm_tf.labelling.seed_rule import Matches, Seed, SeedRule
from rlm_tf.labelling.selection import (
    normalised_loss_scores,
    random_flip,
    select_by_learning_order,
    select_confident,
)
from rlm_tf.labelling.suggestions import SuggestedSeed, suggest_seeds
from rlm_tf.labelling.votes import Votes, majority_vote, read_wrench, seed_votes
from rlm_tf.labelling.word_list import WordList, seed_places

__all__ = [
    "Accuracy",
    "ConfidentJoint",
    "Matches",
    "RuleStatistics",
    "Seed",
    "SeedAgreement",
    "SeedPieces",
    "SeedRule",
    "SeedStatistics",
    "Spread",
    "SuggestedSeed",
    "ToLabel",
    "Votes",
    "WordList",
    "accuracy_from_labels",
    "best_deletion_ratio",
    "binomial_interval",
    "choose_to_label",
    "confident_joint",
    "deletion_counts",
    "fixed_count_deletion_rate",
    "majority_vote",
    "normalised_loss_scores",
    "random_flip",
    "read_wrench",
    "rule_statistics",
    "seed_agreement",
    "seed_deletion_rate",
    "seed_pieces",
    "seed_places",
    "seed_statistics",
    "seed_votes",
    "select_by_learning_order",
    "select_confident",
    "suggest_seeds",
]

"""Callbacks for `fit()`, exact resume, divergence; the memory of many runs."""

from rlm_tf.training.adam_log import AdamLog
from rlm_tf.training.best_weights import BestWeights
from rlm_tf.training.checkpoint import Checkpoint, CheckpointStore
from rlm_tf.training.correctness_history import CorrectnessHistory
from rlm_tf.training.divergence import DivergenceGuard, TrainingDivergedError
from rlm_tf.training.free_graphs_on_exit import free_graphs_on_exit, released_graphs
from rlm_tf.training.held_out_pairs import HeldOutPairs
from rlm_tf.training.interruptible import interruptible
from rlm_tf.training.keep_best import KeepBest
from rlm_tf.training.learning_rate_halving import LearningRateHalving
from rlm_tf.training.linear_rate import LinearRate
from rlm_tf.training.metrics_log import MetricsLog, read_metrics_log
from rlm_tf.training.ramp import ramp
from rlm_tf.training.resumable_batches import ResumableBatches
from rlm_tf.training.resume import ExactResume
from rlm_tf.training.start_rule import StartRule
from rlm_tf.training.switch_phase import SwitchPhase
from rlm_tf.training.teacher_schedule import SaveAnchors, TeacherSchedule
from rlm_tf.training.temporal_ensemble import Targets, TemporalEnsemble
from rlm_tf.training.time_limit import TimeLimit
from rlm_tf.training.token_ensemble import TokenEnsemble, TokenTargets
from rlm_tf.training.triggers import (
    AfterEpochs,
    AfterSteps,
    MetricBelow,
    NoGain,
    Trigger,
)

__all__ = [
    "AdamLog",
    "AfterEpochs",
    "AfterSteps",
    "BestWeights",
    "Checkpoint",
    "CheckpointStore",
    "CorrectnessHistory",
    "DivergenceGuard",
    "ExactResume",
    "HeldOutPairs",
    "KeepBest",
    "LearningRateHalving",
    "LinearRate",
    "MetricBelow",
    "MetricsLog",
    "NoGain",
    "ResumableBatches",
    "SaveAnchors",
    "StartRule",
    "SwitchPhase",
    "Targets",
    "TeacherSchedule",
    "TemporalEnsemble",
    "TimeLimit",
    "TokenEnsemble",
    "TokenTargets",
    "TrainingDivergedError",
    "Trigger",
    "free_graphs_on_exit",
    "interruptible",
    "ramp",
    "read_metrics_log",
    "released_graphs",
]

"""SavedModels: language models that answer strings, classifiers, policies."""

from rlm_tf.serving.arguments import MAX_TEXT_BYTES, MAX_TEXT_TOKENS, MAX_TOKENS
from rlm_tf.serving.encoders.classifier_service import ClassifierService
from rlm_tf.serving.encoders.encoder_service import (
    ElectraService,
    EncoderService,
    MaskedLanguageService,
)
from rlm_tf.serving.encoders.export_encoder import export_encoder
from rlm_tf.serving.export import export_language_model
from rlm_tf.serving.export_functions import export_classifier, export_policy
from rlm_tf.serving.export_latent import export_latent_model
from rlm_tf.serving.export_path import check_export_path, is_version, served_name
from rlm_tf.serving.export_text_classifier import (
    SeededClassifierService,
    TextClassifierService,
    export_text_classifier,
)
from rlm_tf.serving.language_model_service import LanguageModelService
from rlm_tf.serving.latent_service import LatentService

__all__ = [
    "MAX_TEXT_BYTES",
    "MAX_TEXT_TOKENS",
    "MAX_TOKENS",
    "ClassifierService",
    "ElectraService",
    "EncoderService",
    "LanguageModelService",
    "LatentService",
    "MaskedLanguageService",
    "SeededClassifierService",
    "TextClassifierService",
    "check_export_path",
    "export_classifier",
    "export_encoder",
    "export_language_model",
    "export_latent_model",
    "export_policy",
    "export_text_classifier",
    "is_version",
    "served_name",
]

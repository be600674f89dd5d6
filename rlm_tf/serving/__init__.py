"""Language models as SavedModels that answer strings."""

from rlm_tf.serving.export import check_export_path, export_language_model
from rlm_tf.serving.language_model_service import MAX_TOKENS, LanguageModelService

__all__ = [
    "MAX_TOKENS",
    "LanguageModelService",
    "check_export_path",
    "export_language_model",
]

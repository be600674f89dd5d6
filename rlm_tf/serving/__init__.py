"""Language models as SavedModels that answer strings."""

from rlm_tf.serving.export import check_export_path, export_language_model
from rlm_tf.serving.language_model_service import LanguageModelService

__all__ = ["LanguageModelService", "check_export_path", "export_language_model"]

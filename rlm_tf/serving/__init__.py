"""Language models as SavedModels that answer strings."""

from rlm_tf.serving.export import export_language_model
from rlm_tf.serving.language_model_service import LanguageModelService

__all__ = ["LanguageModelService", "export_language_model"]

"""Encoders of texts: pre-training, fine-tuning."""

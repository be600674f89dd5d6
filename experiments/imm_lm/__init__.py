"""The study of induced model matching on language models."""

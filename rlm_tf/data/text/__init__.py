"""Texts, vocabularies and corpora."""

"""Texts with labels: classes or numbers."""

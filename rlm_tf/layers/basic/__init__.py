"""Embeddings, dropout, noise, averages, tables of logits."""

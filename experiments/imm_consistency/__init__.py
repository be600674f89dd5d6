"""The study of Proposition 5.1: which objectives find the truth."""

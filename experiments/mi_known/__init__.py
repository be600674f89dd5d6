"""Estimators of mutual information where it is known."""

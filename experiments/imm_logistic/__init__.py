"""The study of logistic regression with induced model matching."""

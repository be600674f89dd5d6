"""Latent-variable models: settings, training, lines of the study, report."""

"""The measurements of `experiments.benchmark`, one topic a file."""

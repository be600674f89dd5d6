"""What studies share: flags, runs, rows, figures."""

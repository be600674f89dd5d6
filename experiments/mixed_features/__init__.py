"""Teachers where the label distribution is known."""

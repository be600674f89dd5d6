"""The report of `rlm_tf train`: tables, figures, a page."""

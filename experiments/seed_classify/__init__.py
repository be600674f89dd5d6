"""`rlm_tf seed_classify` as a binary of experiments."""

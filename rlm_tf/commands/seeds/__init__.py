"""`rlm_tf seed_classify`."""

"""What `rlm_tf distil` does."""

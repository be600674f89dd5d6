"""`rlm_tf train` on five kinds of text that any system has."""

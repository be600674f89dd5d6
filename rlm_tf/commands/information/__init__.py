"""`rlm_tf coherence`: texts and models, estimates that resume, the report."""

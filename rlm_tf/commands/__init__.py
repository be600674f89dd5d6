"""What a person types: `rlm_tf train`, `evaluate`, `score`, `generate`, `export`."""

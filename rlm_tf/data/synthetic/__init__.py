"""Tasks whose examples are drawn."""

"""Teachers, and students that learn from them."""

"""Small studies of the questions that the IMM paper leaves open."""

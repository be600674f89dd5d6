"""What is done to texts and their tokens in a graph."""

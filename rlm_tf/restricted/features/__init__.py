"""Models of a label given some of the features."""

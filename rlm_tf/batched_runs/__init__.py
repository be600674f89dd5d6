"""Many small training runs side by side in one graph, without Keras models."""

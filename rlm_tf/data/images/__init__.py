"""Labelled images: readers, batches and their augmentation."""

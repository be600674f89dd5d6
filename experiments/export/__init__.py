"""Command: SavedModels."""

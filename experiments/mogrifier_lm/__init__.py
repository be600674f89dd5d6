"""Recurrent language models with the cells and regularisers of Melis."""

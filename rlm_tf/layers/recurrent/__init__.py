"""Recurrent cells, and the loop that runs them."""

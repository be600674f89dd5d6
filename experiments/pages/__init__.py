"""Fills the tables of the pages from the rows of the studies."""

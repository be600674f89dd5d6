"""Tests of labelled images."""

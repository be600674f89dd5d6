"""Tests of networks for images."""

"""Tests of teachers and students."""

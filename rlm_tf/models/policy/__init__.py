"""Policies that learn by reinforcement."""

"""Tests of strategies of distillation."""

"""Rows of encoders that were fine-tuned, for tests of tables."""

from __future__ import annotations


def task_row(arm, seed, restart, accuracy, task="sst2-tenth"):
    """Returns a row."""
    peers = {"tfidf": {"accuracy": 0.75}, "majority": {"accuracy": 0.5}}
    return {
        "name": f"{task}-{arm}-{seed}-{restart}",
        "arm": arm,
        "task": task,
        "seed": seed,
        "restart": restart,
        "test": {"accuracy": accuracy},
        "seconds": 10.0,
        "peers": peers,
        "imm_coverage": 0.9 if arm == "imm" else 0.0,
        "imm_count": 5.5 if arm == "imm" else 0.0,
    }

"""Invented rows of `imm_lm`."""

from __future__ import annotations

import numpy as np


def row_of(name, arm, tokens, perplexity, text="same"):
    """Returns a row of a run; validation perplexity is 3 % above that of the test."""
    return {
        "name": name,
        "config": {
            "arm": arm,
            "restricted_text": text,
            "fraction": 0.5,
            "epochs": 10,
        },
        "corpus": {"name": "ptb", "train_tokens": tokens},
        "perplexity": {"valid": perplexity * 1.03, "test": perplexity},
        "interpolation": {
            source: {"mu": 0.2, "valid": perplexity, "test": perplexity}
            for source in ("same", "all")
        },
        "restricted_perplexity": {
            source: {
                name: {"perplexity": value, "tokens": 9, "impossible": 1}
                for name in ("train", "valid", "test")
            }
            for source, value in (("same", 250.0), ("all", 200.0))
        },
        "parameters": 1234,
        "machine": "x86_64, 2 cores",
        "commit": "0123456789ab",
        "step_ms": 45.0,
        "other_cores": 0.1,
        "induced_perplexity": {
            name: {"perplexity": 300.0, "tokens": 9, "left_out": 2}
            for name in ("train", "valid", "test")
        },
        "seconds": 100.0,
        "epochs": 10,
        "curve": [
            {"epoch": epoch, "val_perplexity": perplexity * (2 - epoch / 10)}
            for epoch in range(10)
        ],
    }


def rows_of_a_law():
    """Returns rows of arm none that follow a law, and two of IMM."""
    law = {d: float(np.exp(4.0 + 300 / d**0.5)) for d in (50_000, 100_000, 200_000)}
    rows = [row_of(f"none-{d}-seed1", "none", d, value) for d, value in law.items()]
    # As good as arm none would be with twice the text.
    rows.append(row_of("imm-in-batch-seed1", "imm-in-batch", 100_000, law[200_000]))
    rows.append(row_of("imm-all-seed1", "imm-in-batch", 50_000, law[200_000], "all"))
    return rows

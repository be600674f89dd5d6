"""What the paper reports, on all of Penn Treebank with two layers of 1500."""

from __future__ import annotations

# Table 2, best of many restarts: validation and test perplexity.
PERPLEXITY = {
    "paper: dropout only": (81.6, 77.5),
    "paper: noising": (76.7, 73.9),
    "paper: IMM": (76.0, 73.3),
}
# Table 1, perplexity of the next word given one word: train, validation, test.
INDUCED = {
    "paper: LSTM": (260.16, 339.24, 309.56),
    "paper: LSTM with IMM": (237.55, 302.30, 278.48),
    "paper: Kneser-Ney": (92.19, 199.28, 185.71),
}

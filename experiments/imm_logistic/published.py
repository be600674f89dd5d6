"""What the paper says of logistic regression (section 1.1, appendix D.1).

Figures 1, 2 and 4 are printed as plots only, so there are no cells to compare with.
"""

from __future__ import annotations

# n -> the best ratio lambda / (1 + lambda), read off Figure 4 by the authors.
BEST_RATIOS = {2: 0.8, 10: 0.7, 20: 0.6}
# Slope and intercept of the rule through them.
RULE = (-0.0111, 0.818)
# The data that IMM is worth, more than there is, averaged over sizes.
EXTRA_DATA = "about 30 %"
# What it claims of Figure 2, by the lines of our table.
CLAIMS = {
    "IMM is better on average": "always",
    "the spread is smaller with IMM": "typically",
    "where the gain is largest": "where data are few, near the number of parameters",
    "the gain is worth, in data": f"{EXTRA_DATA} more on average",
}

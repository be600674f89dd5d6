"""What the thesis reports of Two-Tailed Averaging (sections 3.5, 3.6)."""

from __future__ import annotations

# Best validation loss on Penn Treebank, nats a token: of a larger model, trained for
# longer, whose hyper-parameters were tuned.
LOSSES = {
    "iterates themselves": "4.02",
    "2TA, E": "3.92",
    "2TA, E, by training loss": "3.93",
}
# What the propositions of section 3.5 say, under their assumptions.
PROPOSITIONS = {
    3: "switches keep coming",
    5: "losses at switches only go down",
    6: "L grows without bound",
    7: "the loss goes to the minimum",
}

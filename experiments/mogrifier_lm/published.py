"""Numbers that no row has: the thesis', and two that were measured by hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

# Table 2.3: validation perplexity on the words of PTB, 24 million parameters, 145
# epochs, with a temperature; by the name of our run.
ABLATION = MappingProxyType(
    {
        "lstm": 57.5,
        "mogrifier": 54.1,
        "full-rank": 54.6,
        "no-zigzag": 55.0,
        "mlstm": 57.8,
    }
)

# Table 2.1, valid and test perplexity on the words of PTB, 24 million parameters: each
# way of evaluating has a temperature, and with masks there are 200.
WAYS = MappingProxyType(
    {
        "static": {"LSTM": (55.8, 54.6), "Mogrifier": (52.1, 51.0)},
        "static, masks": {"LSTM": (55.5, 54.1), "Mogrifier": (51.4, 50.1)},
        "dynamic": {"LSTM": (48.9, 48.4), "Mogrifier": (45.1, 45.0)},
        "dynamic, masks": {"LSTM": (48.6, 48.4), "Mogrifier": (44.9, 44.8)},
    }
)

# Tables 2.1 (35 million parameters, mixtures of two softmaxes) and 2.2 (24 million),
# valid and test, all of the text; by the name of our run.
OTHER_TEXTS = MappingProxyType(
    {
        "wikitext-2-lstm": "62.6 / 60.1",
        "wikitext-2-mogrifier": "58.7 / 56.6",
        "characters-lstm": "1.163 / 1.143 bits",
        "characters-mogrifier": "1.149 / 1.131 bits",
    }
)


class ByHand(NamedTuple):
    """What was measured by hand on the saved model of a run.

    Attributes:
        model: Validation perplexity in the row of the run; another has none of this.
        valid: Validation perplexity that was measured.
        test: The same of the test text.
    """

    model: float
    valid: float
    test: float

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Returns whether a row is that of the run."""
        return round(row["perplexity"]["valid"], 2) == self.model


# `evaluate(..., temperature_from=valid)` of the run with 4 dropout samples.
FOUR_SAMPLES_WITH_TEMPERATURE = ByHand(186.92, 157.15, 153.04)
# `DynamicEvaluation(statistics, 3e-4, 1e-3, 1e-3)` of the plain LSTM of an hour, which
# is what was chosen for everything together.
PLAIN_LSTM_LIKE_EVERYTHING = ByHand(150.36, 114.67, 112.42)

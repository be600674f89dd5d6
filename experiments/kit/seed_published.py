"""What Dong (2025) has of classifiers from seed words."""

from __future__ import annotations

from collections.abc import Mapping

# Table 3.2, micro and macro F1, BERT-base: means of five runs.
TABLE_3_2: Mapping[str, Mapping[str, str]] = {
    "ag-news": {
        "vanilla": "83.9 / 83.9",
        "standard": "82.2 / 82.0",
        "o2u": "79.8 / 79.8",
        "lops": "79.5 / 79.5",
        "seed-deletion": "84.3 / 84.2",
        "random-deletion": "86.2 / 86.1",
        "mlm-replace": "85.8 / 85.8",
        "paraphrase": "85.4 / 85.4",
        "oracle": "86.3 / 86.2",
    },
    "20news-coarse": {
        "vanilla": "80.5 / 80.1",
        "standard": "78.9 / 80.0",
        "o2u": "80.9 / 78.5",
        "lops": "81.7 / 80.7",
        "seed-deletion": "86.4 / 86.1",
        "random-deletion": "84.4 / 84.8",
        "mlm-replace": "87.4 / 87.5",
        "paraphrase": "86.9 / 86.7",
        "oracle": "90.6 / 90.6",
    },
    "20news-fine": {
        "vanilla": "68.2 / 69.0",
        "standard": "64.4 / 66.6",
        "o2u": "71.1 / 71.2",
        "lops": "73.8 / 72.7",
        "seed-deletion": "73.7 / 75.0",
        "random-deletion": "76.3 / 76.8",
        "mlm-replace": "73.6 / 74.8",
        "paraphrase": "75.6 / 76.8",
        "oracle": "81.1 / 81.1",
    },
    "rotten-tomatoes": {
        "vanilla": "71.4 / 71.3",
        "standard": "72.2 / 72.0",
        "o2u": "74.1 / 74.0",
        "lops": "70.4 / 70.4",
        "seed-deletion": "70.4 / 70.3",
        "random-deletion": "73.6 / 73.4",
        "mlm-replace": "76.7 / 76.7",
        "paraphrase": "75.4 / 75.3",
        "oracle": "79.6 / 79.6",
    },
}

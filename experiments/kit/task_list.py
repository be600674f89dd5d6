"""Labelled texts that studies fine-tune encoders on; read before anything slow is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Task(NamedTuple):
    """Where examples come from, and what counts.

    Attributes:
        source: "ag_news"; a task of GLUE, whose published dev text is the test; or
            "python-docs", lines of the embedded corpus: of its first half or second?
        metrics: Of `encoder_tasks.METRICS`, the first one counts.
        train: Training examples; a share of all, or how many; None: all.
        length: Most pieces of a row.
        others: Further test splits of GLUE, by what their metrics end in.
    """

    source: str
    metrics: tuple[str, ...] = ("accuracy",)
    train: float | int | None = None
    length: int = 64
    others: Mapping[str, str] = MappingProxyType({})


TASKS: Mapping[str, Task] = {
    "sst2-tenth": Task("sst2", train=0.1),
    "ag-news-1000": Task("ag_news", train=1000),
    "ag-news-300": Task("ag_news", train=300),
    "cola": Task("cola", ("matthews", "accuracy")),
    "rte": Task("rte", length=128),
    "mrpc": Task("mrpc", ("f1", "accuracy"), length=128),
    "qnli": Task("qnli", length=128),
    "sst2": Task("sst2"),
    "mnli": Task("mnli", length=128, others={"_mismatched": "dev_mismatched"}),
    "qqp": Task("qqp", length=128),
    "stsb": Task("stsb", ("spearman",), length=128),
    # Needs no files.
    "docs-halves": Task("python-docs", train=80, length=16),
}
# Those that GLUE's average is of, and the metric of each that it has (Table 1.1).
GLUE: Mapping[str, str] = {
    "mnli": "accuracy",
    "qqp": "accuracy",
    "qnli": "accuracy",
    "sst2": "accuracy",
    "cola": "matthews",
    "rte": "accuracy",
    "mrpc": "accuracy",
    "stsb": "spearman",
}

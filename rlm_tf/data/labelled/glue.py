"""Readers of GLUE's tasks, from their standard files, by their published counts."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

from rlm_tf.checks import check_option
from rlm_tf.data.labelled.labelled_texts import LabelledTexts
from rlm_tf.data.labelled.published_files import find_published
from rlm_tf.data.labelled.table_files import column, numbers, places, read_table

Path = str | os.PathLike[str]
_NLI = ("entailment", "neutral", "contradiction")
_TWO = ("not_entailment", "entailment")


class _Task(NamedTuple):
    """A task's files.

    Attributes:
        folder: Of the files, inside `glue`.
        files: Of each split, and how many examples they have together; None: as many
            as there are.
        texts: Columns of text, one or two.
        label: Column of the label.
        classes: Names of the classes by what the label says; empty: numbers.
        titles: Names of the columns of files that do not say them.
        is_broken: Whether the published files have rows that lack columns.
    """

    folder: str
    files: Mapping[str, tuple[tuple[str, ...], int | None]]
    texts: tuple[str, ...]
    label: str
    classes: Mapping[str, str]
    titles: tuple[str, ...] = ()
    is_broken: bool = False


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_TSV = ("train.tsv",), ("dev.tsv",)
_TASKS: Mapping[str, _Task] = {
    "cola": _Task(
        "CoLA",
        {
            "train": (("in_domain_train.tsv",), 8551),
            "dev": (("in_domain_dev.tsv", "out_of_domain_dev.tsv"), 1043),
        },
        ("sentence",),
        "label",
        {"0": "unacceptable", "1": "acceptable"},
        ("source", "label", "mark", "sentence"),
    ),
    "sst2": _Task(
        "SST-2",
        {"train": (_TSV[0], 67_349), "dev": (_TSV[1], 872)},
        ("sentence",),
        "label",
        {"0": "negative", "1": "positive"},
    ),
    "mrpc": _Task(
        "MRPC",
        {
            "train": (("msr_paraphrase_train.txt",), 4076),
            "dev": (("msr_paraphrase_test.txt",), 1725),
        },
        ("#1 String", "#2 String"),
        "Quality",
        {"0": "different", "1": "paraphrase"},
    ),
    "rte": _Task(
        "RTE",
        {"train": (_TSV[0], 2490), "dev": (_TSV[1], 277)},
        ("sentence1", "sentence2"),
        "label",
        _same(*_TWO),
    ),
    "qnli": _Task(
        "QNLI",
        {"train": (_TSV[0], 104_743), "dev": (_TSV[1], 5463)},
        ("question", "sentence"),
        "label",
        _same(*_TWO),
    ),
    "mnli": _Task(
        "MNLI",
        {
            "train": (_TSV[0], 392_702),
            "dev": (("dev_matched.tsv",), 9815),
            "dev_mismatched": (("dev_mismatched.tsv",), 9832),
        },
        ("sentence1", "sentence2"),
        "gold_label",
        _same(*_NLI),
    ),
    "qqp": _Task(
        "QQP",
        {"train": (_TSV[0], 363_846), "dev": (_TSV[1], 40_430)},
        ("question1", "question2"),
        "is_duplicate",
        {"0": "different", "1": "duplicate"},
        is_broken=True,
    ),
    "stsb": _Task(
        "STS-B",
        {"train": (_TSV[0], 5749), "dev": (_TSV[1], 1500)},
        ("sentence1", "sentence2"),
        "score",
        {},
    ),
}
GLUE_TASKS = tuple(_TASKS)


def load_glue(
    task: str, split: str = "train", data_dir: Path | None = None
) -> LabelledTexts:
    """Reads a split of a task of GLUE (Wang et al. 2019, arXiv 1804.07461).

    The splits that are used for tests are called `dev`: those of the benchmark have no
    labels. MRPC's is its own test, its training text what GLUE cuts into two. CoLA's
    has both its parts, in and out of domain.

    Args:
        task: One of `GLUE_TASKS`.
        split: "train", "dev", or "dev_mismatched" of MNLI.
        data_dir: Folder with a folder `glue`, in which each task has one; None means
            the environment variable `RLM_DATA_DIR`.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is not the published one, or a name unknown.
    """
    check_option("load_glue", "task", task, GLUE_TASKS)
    about = _TASKS[task]
    check_option("load_glue", "split", split, about.files)
    files, count = about.files[split]
    texts: list[list[str]] = [[] for _ in about.texts]
    labels: list[str] = []
    where: pathlib.Path | None = None
    for name in files:
        where = find_published(
            "load_glue",
            data_dir,
            (f"glue/{about.folder}", about.folder),
            name,
            "the GLUE site",
        )
        titles, rows = _rows(where, about)
        of_texts = [column(where, titles, each) for each in about.texts]
        of_label = column(where, titles, about.label)
        for found, place in zip(texts, of_texts, strict=True):
            found += [row[place] for row in rows]
        labels += [row[of_label] for row in rows]
    assert where is not None
    if count is not None and len(labels) != count:
        raise ValueError(
            f"{where}: {task} {split} has {count:,} examples as published, found "
            f"{len(labels):,}."
        )
    second = texts[1] if len(texts) > 1 else None
    if not about.classes:
        return LabelledTexts(texts[0], numbers(where, labels), (), second)
    names = tuple(about.classes.values())
    found_places = places(where, labels, tuple(about.classes))
    return LabelledTexts(texts[0], found_places, names, second)


def _rows(path: pathlib.Path, about: _Task) -> tuple[list[str], list[list[str]]]:
    titles, rows = read_table(path, "\t", quoted=False, skip_broken=about.is_broken)
    if about.titles:
        # The first line is an example.
        return list(about.titles), [titles, *rows]
    return titles, rows

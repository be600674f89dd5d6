"""The reader of AG's News (Zhang, Zhao and LeCun 2015, arXiv 1509.01626)."""

from __future__ import annotations

import os

from rlm_tf.data.labelled.labelled_texts import LabelledTexts
from rlm_tf.data.labelled.published_files import find_published
from rlm_tf.data.labelled.table_files import places, read_table

Path = str | os.PathLike[str]
AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
# Examples of the published files.
_COUNTS = {"train.csv": 120_000, "test.csv": 7_600}


def load_ag_news(file: str = "test.csv", data_dir: Path | None = None) -> LabelledTexts:
    """Reads a file of AG's News: titles and descriptions, joined by a blank.

    Args:
        file: "train.csv", "test.csv", or a part of them in the same form.
        data_dir: Folder with a folder `ag_news`; None means the environment variable
            `RLM_DATA_DIR`.

    Raises:
        FileNotFoundError: If it is missing.
        ValueError: If it is not the published one, or of another form.
    """
    path = find_published(
        "load_ag_news",
        data_dir,
        ("ag_news", "ag_news_csv", "."),
        file,
        "the archive ag_news_csv",
    )
    # The first line is an example.
    first, rows = read_table(path, ",")
    rows = [first, *rows]
    if len(first) != 3:
        raise ValueError(
            f"{path}: expected class, title, description, found {len(first)} columns."
        )
    count = _COUNTS.get(file)
    if count is not None and len(rows) != count:
        raise ValueError(
            f"{path}: has {count:,} examples as published, found {len(rows):,}."
        )
    labels = places(path, [row[0] for row in rows], ("1", "2", "3", "4"))
    # A backslash stands for the end of a line.
    texts = [f"{title} {about}".replace("\\", " ") for _, title, about in rows]
    return LabelledTexts(texts, labels, AG_NEWS_CLASSES)

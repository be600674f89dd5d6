"""Documents with classes, and seed words for them, as studies of seeds have them."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rlm_tf.checks import check_option
from rlm_tf.data.labelled.published_files import find_published
from rlm_tf.data.labelled.table_files import column, read_table
from rlm_tf.data.text.text_files import read_bytes

Path = str | os.PathLike[str]
VIEWS = ("raw", "subject+body", "body")
_NAME = "load_documents"


class Documents(NamedTuple):
    """Documents of known classes.

    Attributes:
        texts: The documents.
        labels: int32 `[N]`, places in `class_names`.
        class_names: Sorted; those of the seeds' files.
    """

    texts: list[str]
    labels: np.ndarray
    class_names: tuple[str, ...]


# Of 20 Newsgroups, by-date version (Rennie).
_NEWS_SOURCE = "the page of 20 Newsgroups, 20news-bydate.tar.gz"
_NEWS_FOLDERS = ("20newsgroups", ".")
_NEWS_COUNTS = {"train": 11_314, "test": 7_532}
_RELIGIONS = ("alt.atheism", "soc.religion.christian", "talk.religion.misc")
_LEFT_OUT_OF_COARSE = ("misc.forsale",)
_LEFT_OUT_OF_FINE = (*_LEFT_OUT_OF_COARSE, "talk.politics.misc", "talk.religion.misc")
# Of AG's News: classes by number, as the seeds' files name them.
_AG_NAMES = ("politics", "sports", "business", "technology")
_AG_FOLDERS = ("ag_news", "ag_news_csv", ".")
_AG_ARCHIVE = "the archive ag_news_csv"
_AG_PARTS = {
    "ag-news": ("train.csv", 120_000, _AG_ARCHIVE),
    "ag-news-test": ("test.csv", 7_600, _AG_ARCHIVE),
    "ag-news-sample": (
        "train_sample_5000.csv",
        5_000,
        "5,000 rows of train.csv of the archive ag_news_csv, in its form",
    ),
}
_AG_CLASSES = {
    "World": "politics",
    "Sports": "sports",
    "Business": "business",
    "Sci/Tech": "technology",
}
_NYT_FOLDERS = ("nyt",)
_NYT_SOURCE = (
    "your own copy of the New York Times articles of ConWea (Mekala and Shang 2020), "
    "df.pkl, written as a table with the columns text and label"
)
_RT_SOURCE = "the Cornell page of movie review data, rt-polaritydata.tar.gz"


def load_documents(
    name: str, data_dir: Path | None = None, *, view: str = "subject+body"
) -> Documents:
    """Reads a set of documents, and checks it against its published size.

    `20newsgroups` (18,846 documents, 20 classes), `20newsgroups-coarse` (17,871 in 5:
    all but misc.forsale; the groups of religion and alt.atheism are `religion`),
    `20newsgroups-fine` (16,468 in 17: without talk.politics.misc and
    talk.religion.misc, too); `ag-news` (120,000 in 4), `ag-news-test` (7,600),
    `ag-news-sample` (5,000) and `ag-news-descriptions` (10,001) of its training rows;
    `rotten-tomatoes` (10,662 in 2); `nyt-coarse` and `nyt-fine` (13,081 in 5 and 26)
    from a copy of one's own, `nyt/coarse.csv` and `nyt/fine.csv` (text, label).

    Args:
        name: Of the above.
        data_dir: Folder with the data sets; None: the environment variable
            `RLM_DATA_DIR`.
        view: Of 20 Newsgroups: the file as it is ("raw"), what is behind its header
            ("body"), or the first subject line, a newline and that.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the name or the view is unknown, or there are more or fewer
            documents than published.
    """
    check_option(_NAME, "name", name, tuple(_READERS))
    check_option(_NAME, "view", view, VIEWS)
    texts, classes, count = _READERS[name](data_dir, view)
    if len(texts) != count:
        raise ValueError(
            f"{_NAME}: {name} has {count:,} documents as published, found "
            f"{len(texts):,}."
        )
    names = tuple(sorted(set(classes)))
    places = {own: number for number, own in enumerate(names)}
    labels = np.array([places[own] for own in classes], np.int32)
    return Documents(texts, labels, names)


def document_names() -> tuple[str, ...]:
    """Returns the names that `load_documents` knows."""
    return tuple(_READERS)


# === 20 Newsgroups ===


def _newsgroups(
    data_dir: Path | None, view: str, class_of: Callable[[str], str | None], count: int
) -> tuple[list[str], list[str], int]:
    path = find_published(
        _NAME, data_dir, _NEWS_FOLDERS, "20news-bydate.tar.gz", _NEWS_SOURCE
    )
    found: list[tuple[str, str, str]] = []
    seen = dict.fromkeys(_NEWS_COUNTS, 0)
    with tarfile.open(path) as archive:
        for member in archive:
            parts = member.name.split("/")
            if not member.isfile() or len(parts) < 3:
                continue
            folder, group = parts[-3:-1]
            split = folder.removeprefix("20news-bydate-")
            file = archive.extractfile(member)
            assert file is not None
            if split in seen:
                seen[split] += 1
            own = class_of(group)
            if own is not None:
                text = file.read().decode("latin-1").replace("\r\n", "\n")
                found.append((member.name, _viewed(text, view), own))
    for split, published in _NEWS_COUNTS.items():
        if seen[split] != published:
            raise ValueError(
                f"{_NAME}: {path} has {published:,} documents of {split} as published, "
                f"found {seen[split]:,}."
            )
    # Training documents first; archives may be packed in another order.
    found.sort(key=lambda each: ("-test/" in each[0], each[0]))
    return [text for _, text, _ in found], [own for _, _, own in found], count


def _viewed(text: str, view: str) -> str:
    if view == "raw":
        return text
    header, _, body = text.partition("\n\n")
    if view == "body":
        return body
    lines = header.split("\n")
    subject = next((line for line in lines if line.startswith("Subject:")), "")
    return f"{subject.removeprefix('Subject:').strip()}\n{body}"


def _coarse(group: str) -> str | None:
    if group in _LEFT_OUT_OF_COARSE:
        return None
    return "religion" if group in _RELIGIONS else group.split(".")[0]


def _fine(group: str) -> str | None:
    return None if group in _LEFT_OUT_OF_FINE else group


# === AG's News, Rotten Tomatoes ===


def _ag(name: str, data_dir: Path | None) -> tuple[list[str], list[str], int]:
    file, count, source = _AG_PARTS[name]
    path = find_published(_NAME, data_dir, _AG_FOLDERS, file, source)
    # The first line is an example.
    first, rows = read_table(path, ",")
    rows = [first, *rows]
    wrong = next((row for row in rows if len(row) != 3 or row[0] not in "1234"), None)
    if wrong is not None:
        raise ValueError(
            f"{_NAME}: {path}: expected class 1 to 4, title, description, found "
            f"{wrong!r:.200}."
        )
    texts = [f"{title} {about}" for _, title, about in rows]
    return texts, [_AG_NAMES[int(row[0]) - 1] for row in rows], count


def _ag_descriptions(data_dir: Path | None) -> tuple[list[str], list[str], int]:
    path = find_published(
        _NAME,
        data_dir,
        _AG_FOLDERS,
        "train_sample_10001_description_only.tsv",
        "10,001 rows of train.csv of the archive ag_news_csv: description, tab, class",
    )
    lines = read_bytes(path).decode().removesuffix("\n").split("\n")
    rows = [line.rsplit("\t", 1) for line in lines]
    wrong = next((row for row in rows if row[-1] not in _AG_CLASSES), None)
    if wrong is not None:
        raise ValueError(
            f"{_NAME}: {path}: expected a description, a tab, and one of "
            f"{', '.join(_AG_CLASSES)}, found {wrong!r:.200}."
        )
    return [text for text, _ in rows], [_AG_CLASSES[own] for _, own in rows], 10_001


def _rotten_tomatoes(data_dir: Path | None) -> tuple[list[str], list[str], int]:
    texts, classes = [], []
    for own in ("neg", "pos"):
        path = find_published(
            _NAME,
            data_dir,
            ("rt-polarity", "rt-polaritydata", "."),
            f"rt-polarity.{own}",
            _RT_SOURCE,
        )
        lines = path.read_bytes().decode("cp1252").removesuffix("\n").split("\n")
        texts += lines
        classes += [own] * len(lines)
    return texts, classes, 10_662


def _nyt(kind: str, data_dir: Path | None) -> tuple[list[str], list[str], int]:
    """Reads a user's own copy: the articles are the New York Times'."""
    path = find_published(_NAME, data_dir, _NYT_FOLDERS, f"{kind}.csv", _NYT_SOURCE)
    header, rows = read_table(path)
    places = [column(path, header, name) for name in ("text", "label")]
    texts, classes = ([row[place] for row in rows] for place in places)
    return texts, classes, 13_081


_Read = Callable[[Any, str], tuple[list[str], list[str], int]]
_READERS: Mapping[str, _Read] = {
    "20newsgroups": lambda d, view: _newsgroups(d, view, lambda g: g, 18_846),
    "20newsgroups-coarse": lambda d, view: _newsgroups(d, view, _coarse, 17_871),
    "20newsgroups-fine": lambda d, view: _newsgroups(d, view, _fine, 16_468),
    "ag-news": lambda d, _: _ag("ag-news", d),
    "ag-news-test": lambda d, _: _ag("ag-news-test", d),
    "ag-news-sample": lambda d, _: _ag("ag-news-sample", d),
    "ag-news-descriptions": lambda d, _: _ag_descriptions(d),
    "rotten-tomatoes": lambda d, _: _rotten_tomatoes(d),
    "nyt-coarse": lambda d, _: _nyt("coarse", d),
    "nyt-fine": lambda d, _: _nyt("fine", d),
}

# === Seeds ===

_LOPS = "the GitHub project dheeraj7596/LOPS"
_CONWEA = "the GitHub project dheeraj7596/ConWea"
_SEED_FILES = {
    "20newsgroups": (_NEWS_FOLDERS, "seedwords_conwea_fine.json", _CONWEA),
    "20newsgroups-coarse": (_NEWS_FOLDERS, "seedwords_lops_coarse_nomisc.json", _LOPS),
    "20newsgroups-fine": (_NEWS_FOLDERS, "seedwords_lops_fine_nomisc.json", _LOPS),
    "ag-news": (_AG_FOLDERS, "seedwords_lops.json", _LOPS),
    "nyt-coarse": (_NYT_FOLDERS, "seedwords_coarse.json", _LOPS),
    "nyt-fine": (_NYT_FOLDERS, "seedwords_fine.json", _LOPS),
}
# Of a study of ours, as none was published; the classes are those of the files.
_RT_SEEDS = {
    "neg": ["awful", "bad", "boring", "horrible", "terrible"],
    "pos": ["amazing", "excellent", "good", "great", "wonderful"],
}


def load_seeds(name: str, data_dir: Path | None = None) -> dict[str, list[str]]:
    """Returns the seed words of a set of documents, by class.

    Those of LOPS (Mekala, Dong and Shang 2022); of all 20 Newsgroups those of ConWea
    (Mekala and Shang 2020); of `rotten-tomatoes`, for which none was published, five
    plain words a class.

    Args:
        name: Of `load_documents`; `ag-news-westclass` has the first three of each
            class, as WeSTClass (Meng et al. 2018).
        data_dir: See `load_documents`.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the name is unknown, or the file has not lists of words by class.
    """
    function = "load_seeds"
    known = (*_READERS, "ag-news-westclass")
    check_option(function, "name", name, known)
    if name == "rotten-tomatoes":
        return {own: list(words) for own, words in _RT_SEEDS.items()}
    key = "ag-news" if name.startswith("ag-news") else name
    folders, file, source = _SEED_FILES[key]
    path = find_published(function, data_dir, folders, file, source)
    found = json.loads(read_bytes(path).decode())
    if not isinstance(found, dict) or not all(
        isinstance(words, list) and all(isinstance(word, str) for word in words)
        for words in found.values()
    ):
        raise ValueError(f"{function}: {path} has not lists of words by class.")
    if name == "ag-news-westclass":
        return {own: words[:3] for own, words in found.items()}
    return found

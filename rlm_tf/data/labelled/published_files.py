"""Where the files of published sets of labelled texts are."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence

from rlm_tf.data.text.corpora import DATA_DIR_VARIABLE
from rlm_tf.data.text.text_files import find_file

Path = str | os.PathLike[str]


def find_published(
    caller: str, data_dir: Path | None, folders: Sequence[str], name: str, source: str
) -> pathlib.Path:
    """Returns the path of a file, plain, `.gz` or `.zip`.

    Args:
        caller: For the message.
        data_dir: Folder with the data sets; None means the environment variable
            `RLM_DATA_DIR`.
        folders: Where in it the file may be.
        name: Of the file.
        source: Where to get it, for the message.

    Raises:
        FileNotFoundError: If there is none.
    """
    folder = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    if folder is None:
        raise FileNotFoundError(
            f"{caller} needs {name}: give `data_dir` or set {DATA_DIR_VARIABLE}; get "
            f"it from {source}."
        )
    tried = [pathlib.Path(folder) / part for part in folders]
    found = find_file(tried, name)
    if found is None:
        raise FileNotFoundError(
            f"{caller}: there is no {name} (or .gz, .zip) in "
            f"{', '.join(map(str, tried))}; get it from {source}."
        )
    return found

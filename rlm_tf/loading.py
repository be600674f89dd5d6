"""Models from their files, with every class of the library known to Keras."""

from __future__ import annotations

import os
import pathlib
import zipfile
from typing import TYPE_CHECKING

from rlm_tf.file_errors import one_line

if TYPE_CHECKING:
    import keras


def load_model(path: str | os.PathLike[str], *, compile: bool = True) -> keras.Model:
    """Loads a model, this library's or another, that `model.save` has written.

    What `keras.saving.load_model` does, and all classes of the library are registered
    before. Classes of one's own inside of it have to be registered, too
    (`keras.saving.register_keras_serializable`). No code in the file is run.

    Wrappers around a language model, such as `rlm_tf.models.InducedModelMatching`, come
    back without their `contexts`: files never hold the training text.

    Args:
        path: A `.keras` file, or an `.h5` file of earlier Keras.
        compile: Whether the model gets its optimiser with its state, and losses and
            metrics, to be trained on; else it computes only.

    Returns:
        The model.

    Raises:
        FileNotFoundError: If there is no such file.
        IsADirectoryError: If it is a folder. A SavedModel is one: that is loaded by
            `tf.saved_model.load`.
        ValueError: If the file is damaged, needs a class that Keras does not know, or
            holds something else than a model; names the file and the reason.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected a .keras file.")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")

    import keras

    # Registers what a file may hold.
    import rlm_tf.models  # noqa: F401

    try:
        with path.open("rb") as file:
            # Keras would say that it does not exist.
            if path.suffix == ".keras" and not zipfile.is_zipfile(file):
                raise ValueError("it is no zip file, or cut off")
        model = keras.saving.load_model(path, compile=compile)
    # Whatever a damaged file makes Keras, HDF5 or zip raise.
    except Exception as error:
        raise ValueError(
            f"{path} could not be read as a model ({_reason(error)}); name the .keras "
            "file that a run or `model.save` has written, or let it be written anew."
        ) from error
    if not isinstance(model, keras.Model):
        raise ValueError(f"{path} holds a {type(model).__name__}, which is no model.")
    return model


def _reason(error: Exception) -> str:
    """Returns an error in one line: the first one, where Keras tells of another.

    Keras puts the whole config before what has gone wrong.
    """
    told, kept = str(error), error.__context__
    if "Exception encountered:" in told and isinstance(kept, Exception):
        return _reason(kept)
    return one_line(error)

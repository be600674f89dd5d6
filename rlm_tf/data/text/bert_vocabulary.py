"""The vocabulary of a published BERT, with special tokens where ours are."""

from __future__ import annotations

import json
import pathlib
from typing import Any, NamedTuple

import numpy as np

from rlm_tf.data.text.special_tokens import CLS, ENCODER_RESERVED, MASK
from rlm_tf.data.text.vocabulary import Vocabulary

# What published vocabularies call `ENCODER_RESERVED`.
_PUBLISHED = ("[PAD]", "[UNK]", CLS, "[SEP]", MASK)
_TOKENS, _CONFIG = "vocab.txt", "tokenizer_config.json"
# The same of KerasHub's presets.
_PRESET_TOKENS, _PRESET_CONFIG = "assets/tokenizer/vocabulary.txt", "tokenizer.json"


class BertVocabulary(NamedTuple):
    """What a checkpoint says of its tokens.

    Attributes:
        vocabulary: Its pieces, behind padding, unknown, [CLS], [SEP] and [MASK].
        rows: The id of each in the checkpoint, int `[V]`: the rows of its embeddings.
    """

    vocabulary: Vocabulary
    rows: np.ndarray


def bert_vocabulary(folder: str | pathlib.Path) -> BertVocabulary:
    """Reads the pieces of a published BERT, to be used like an `encoder_vocabulary`.

    Args:
        folder: With `vocab.txt`, a piece a line, and `tokenizer_config.json`, whose
            `do_lower_case` says which text the pieces are of; without: lower case, if
            no piece has capitals. Or a preset of KerasHub.

    Raises:
        FileNotFoundError: If there is no `vocab.txt`.
        ValueError: If a special token is missing, or a piece is doubled or empty.
    """
    path = pathlib.Path(folder) / _TOKENS
    preset = pathlib.Path(folder) / _PRESET_TOKENS
    if preset.is_file() and not path.is_file():
        path = preset
    if not path.is_file():
        raise FileNotFoundError(
            f"bert_vocabulary: {folder} has no {_TOKENS}; expected the folder of a "
            "BERT checkpoint, whose pieces of words are in it."
        )
    published = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    published = [piece.removesuffix("\r") for piece in published]
    places = {piece: i for i, piece in enumerate(published)}
    missing = [name for name in _PUBLISHED if name not in places]
    if missing:
        raise ValueError(f"bert_vocabulary: {path} has no {', '.join(missing)}.")
    special = [places[name] for name in _PUBLISHED]
    others = [i for i in range(len(published)) if i not in special]
    tokens = (*ENCODER_RESERVED, *(published[i] for i in others))
    rule = "wordpiece-lower" if _is_lower(path, published) else "wordpiece"
    try:
        vocabulary = Vocabulary(tokens, rule)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return BertVocabulary(vocabulary, np.array([*special, *others]))


def _read(path: pathlib.Path) -> dict[str, Any]:
    """Returns what a file of settings says.

    Raises:
        ValueError: If it is no dictionary in JSON.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"bert_vocabulary: {path} is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ValueError(
            f"bert_vocabulary: {path} must hold a dictionary, found "
            f"{type(found).__name__}."
        )
    return found


def _is_lower(path: pathlib.Path, pieces: list[str]) -> bool:
    config = path.with_name(_CONFIG)
    if config.is_file():
        said = _read(config).get("do_lower_case")
        if said is not None:
            return bool(said)
    # That of a preset lies two folders deep.
    preset = path.absolute().parent.parent.parent / _PRESET_CONFIG
    if path.name != _TOKENS and preset.is_file():
        own = _read(preset).get("config") or {}
        if own.get("lowercase") is not None:
            return bool(own["lowercase"])
    words = (piece for piece in pieces if not piece.startswith("["))
    return all(piece == piece.lower() for piece in words)

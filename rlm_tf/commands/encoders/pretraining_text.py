"""The text of `rlm_tf pretrain`: what is held out, and rows of it."""

from __future__ import annotations

from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.encoders.settings import PretrainSettings
from rlm_tf.commands.settings import EMBEDDED
from rlm_tf.commands.training import reading
from rlm_tf.data import Segments, Vocabulary
from rlm_tf.data.text import text_files
from rlm_tf.data.text.python_docs import python_docs

# Of what is held out.
_HELD_OUT, _MOST_HELD_OUT = 0.1, 500_000
# Rows that a document must have on average, in bytes of a token, to be one.
_BYTES, _ROWS_OF_A_DOCUMENT = 4, 2


def read_texts(
    settings: PretrainSettings, notes: list[str], warnings: list[str]
) -> tuple[bytes, bytes]:
    """Returns the training text and the held-out one.

    Args:
        settings: What was asked for.
        notes: What was done is added to it.
        warnings: What a user should know, likewise.
    """
    name = str(settings.text)
    if name == EMBEDDED:
        splits = python_docs()
        notes.append("held out: its validation text, by topics")
        return splits["train"].encode(), splits["valid"].encode()
    most = int(settings.most_megabytes * 1e6)
    whole = reading.first_part(reading.read_text(name), name, most, warnings)
    if settings.valid is not None:
        notes.append(f"held out: {settings.valid}")
        return whole, reading.read_text(settings.valid)
    share = min(_HELD_OUT, _MOST_HELD_OUT / max(len(whole), 1))
    train, valid = text_files.cut(whole, [1 - share], at_lines=True)
    if len(valid) < share * len(whole) / 2:
        train, valid = text_files.cut(whole, [1 - share], at_lines=False)
    notes.append(
        f"held out: the last {reading.size_text(valid)} of {reading.size_text(whole)}"
    )
    return train, valid


def rows_of(
    settings: PretrainSettings,
    vocabulary: Vocabulary,
    train: bytes,
    valid: bytes,
    notes: list[str],
    warnings: list[str],
) -> tuple[Segments, Segments]:
    """Returns rows of the training text, in batches, and of the held-out one.

    Args:
        settings: What was asked for.
        vocabulary: Of the text.
        train: The training text.
        valid: The held-out text.
        notes: What was done is added to it.
        warnings: What a user should know, likewise.

    Raises:
        ValueError: If the held-out text is too short.
    """
    documents = settings.documents
    if documents is None:
        parts = [part for part in train.split(b"\n\n") if part.strip()]
        mean = len(train) / max(len(parts), 1)
        documents = mean >= _BYTES * _ROWS_OF_A_DOCUMENT * settings.length
        documents &= len(parts) > 1
        notes.append(
            f"documents: parted by empty lines, {mean:,.0f} bytes each on average"
            if documents
            else "documents: all is one (empty lines part short pieces, if any)"
        )
        print(f"  {notes[-1]}")

    def segments(text: bytes) -> Segments:
        return Segments(
            text,
            vocabulary,
            settings.length,
            1,
            documents=documents,
            two_texts=settings.two_texts,
            seed=settings.seed,
        )

    rows = segments(train)
    size = min(settings.batch_size, len(rows.tokens))
    if size < settings.batch_size:
        warnings.append(
            f"the text makes {number_of('row', len(rows.tokens))} of "
            f"{settings.length} tokens, all of which are a step (--batch_size is "
            f"{settings.batch_size})"
        )
    try:
        held = segments(valid)
    except ValueError as error:
        where = f"--valid={settings.valid}" if settings.valid else "held-out text"
        raise ValueError(
            f"{where}: {error} A shorter --length, or more text to hold out "
            "(--valid), would do."
        ) from None
    return rows.in_batches_of(size), held

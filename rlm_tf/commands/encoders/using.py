"""What is done with trained encoders and classifiers: fill_mask, classify."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from rlm_tf.command_line.quiet import native_silence
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.encoders.folder import SAVED_MODEL
from rlm_tf.commands.encoders.settings import ClassifySettings, FillMaskSettings
from rlm_tf.serving.arguments import MAX_TEXT_BYTES


def fill_mask(settings: FillMaskSettings) -> None:
    """Prints the most probable words for each [MASK] of a text."""
    signatures = _signatures(settings.model)
    if "fill_mask" not in signatures:
        raise ValueError(
            f"--model={settings.model} fills no masks; expected a folder of `rlm_tf "
            "pretrain`."
        )
    found = signatures["fill_mask"](
        texts=tf.constant([settings.text]), k=tf.constant(settings.k)
    )
    if found["cut"].numpy()[0]:
        _warn("the text is longer than the encoder reads; its end was left out")
    tokens, probs = found["tokens"].numpy()[0], found["probabilities"].numpy()[0]
    for words, shares in zip(tokens, probs, strict=True):
        # A piece of blanks alone is shown as it is.
        shown = [
            f"{text.strip() or repr(text)} {share:.3f}"
            for text, share in zip(map(_text, words), shares, strict=True)
            if text
        ]
        if shown:
            print("  ".join(shown))


def classify(settings: ClassifySettings) -> None:
    """Prints the class of each line of standard input, and its probability."""
    signatures = _signatures(settings.model)
    if "classify" not in signatures:
        raise ValueError(
            f"--model={settings.model} is no classifier; expected a folder of `rlm_tf "
            "classifier` or `rlm_tf finetune`."
        )
    function = signatures["classify"]
    arguments = function.structured_input_signature[1]
    if "texts_b" in arguments:
        raise ValueError(
            f"--model={settings.model} tells pairs of texts, lines are one each; call "
            "its SavedModel."
        )
    cut = 0
    for lines in _batches(settings.batch_size):
        found = function(texts=tf.constant(lines))
        cut += int(found["cut"].numpy().sum())
        if "values" in found:
            print("\n".join(f"{value:.6g}" for value in found["values"].numpy()))
            continue
        best = tf.reduce_max(found["probabilities"], axis=1).numpy()
        for label, probability in zip(found["labels"].numpy(), best, strict=True):
            print(f"{label.decode()}\t{probability:.4f}")
        sys.stdout.flush()
    if cut:
        _warn(
            f"{number_of('line', cut)} longer than what is read: the end was left out"
        )


def _warn(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr)


def _text(piece: bytes) -> str:
    return piece.decode("utf-8", "replace")


def _signatures(model: str | None) -> Any:
    # The pieces are TensorFlow Text's, which says how it read them.
    with native_silence():
        import tensorflow_text  # noqa: F401

        loaded = tf.saved_model.load(str(pathlib.Path(str(model)) / SAVED_MODEL))
    signatures = loaded.signatures
    # Signatures go with the object that has their variables.
    signatures._loaded = loaded
    return signatures


def _batches(size: int) -> Iterator[list[str]]:
    lines: list[str] = []
    for number, line in enumerate(sys.stdin, start=1):
        text = line.rstrip("\n").encode("utf-8", "surrogateescape")
        if len(text) > MAX_TEXT_BYTES:
            _warn(f"line {number} is read up to {MAX_TEXT_BYTES:,} bytes")
        lines.append(text[:MAX_TEXT_BYTES].decode("utf-8", "ignore"))
        if len(lines) == size:
            yield lines
            lines = []
    if lines:
        yield lines

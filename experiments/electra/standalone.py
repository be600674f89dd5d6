"""Text that generators trained alone have corrupted, and detectors' scores on it."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any

import keras
import numpy as np
from sklearn.linear_model import LogisticRegression

from experiments.kit.encoder_text import EncoderText
from rlm_tf.evaluation import (
    CorruptedText,
    DetectionScores,
    TwoSidedNGram,
    detect,
    detection_scores,
)

# Rows of validation text that are scored at every look, and rows that n-grams judge.
LOOKED_AT = 512
_JUDGED = 384
_PLACES = 512


def corrupted_file(folder: pathlib.Path, split: str) -> pathlib.Path:
    """Returns where a masked language model's run has the text of a split."""
    return folder / f"corrupted-{split}.npz"


def load_corrupted(folder: pathlib.Path, split: str, command: str) -> CorruptedText:
    """Returns the corrupted text of a split.

    Args:
        folder: Of the run that has made it.
        split: valid or test.
        command: What makes it, for the message.

    Raises:
        FileNotFoundError: If it was not made.
    """
    path = corrupted_file(folder, split)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not there: detectors are scored on text of masked language "
            f"models that were trained before. `{command}` trains them."
        )
    return CorruptedText.load(path)


def digest_of(text: CorruptedText) -> str:
    """Returns what tells a corrupted text from others."""
    digest = hashlib.sha256()
    for part in text:
        if part is None:
            continue
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def first_rows(text: CorruptedText, number: int) -> CorruptedText:
    """Returns the first rows of a text."""
    return CorruptedText(
        *(None if part is None else part[:number] for part in text)  # type: ignore[arg-type]
    )


class StandaloneScores(keras.callbacks.Callback):
    """Adds scores on text of generators trained alone to the logs of every epoch.

    `NAME_f1` and `NAME_cross_entropy`, for each text.

    Args:
        texts: By name.
    """

    def __init__(self, texts: dict[str, CorruptedText]) -> None:
        super().__init__()
        self._texts = texts

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is None:
            return
        for name, text in self._texts.items():
            found = detect(self.model, text)
            logs[f"{name}_f1"] = found.scores.f1
            logs[f"{name}_cross_entropy"] = found.cross_entropy


def n_gram_detector(
    text: EncoderText, valid: CorruptedText, test: CorruptedText
) -> DetectionScores:
    """Returns how well n-grams find replaced tokens: the simple peer of a detector.

    A logistic regression, learnt from the validation text, of how probable a token is
    between its neighbours, how probable it is without them, and how much less than the
    most probable one. Scored on the first rows of the test text.
    """
    peer = TwoSidedNGram(text.train.tokens, text.train.ids, len(text.vocabulary))
    rows = {
        name: first_rows(part, _JUDGED)
        for name, part in (("valid", valid), ("test", test))
    }
    features = {name: _features(peer, part) for name, part in rows.items()}
    model = LogisticRegression(max_iter=1000)
    places, found = features["valid"]
    model.fit(found, rows["valid"].labels[places[:, 0], places[:, 1]])
    places, found = features["test"]
    # Special tokens are never replaced.
    probs = np.zeros(rows["test"].labels.shape)
    probs[places[:, 0], places[:, 1]] = model.predict_proba(found)[:, 1]
    return detection_scores(probs, rows["test"].labels, rows["test"].padding)


def _features(
    peer: TwoSidedNGram, text: CorruptedText
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the places of words, and three numbers of each."""
    special = np.isin(text.tokens, [*peer.ids])
    places = np.argwhere(~special)
    found = []
    for first in range(0, len(places), _PLACES):
        part = places[first : first + _PLACES]
        log_probs = peer.log_probs(text.tokens, part)
        shown = text.tokens[part[:, 0], part[:, 1]]
        own = log_probs[np.arange(len(part)), shown]
        found.append(
            np.stack([own, peer.unigram[shown], own - log_probs.max(axis=1)], axis=1)
        )
    return places, np.concatenate(found)

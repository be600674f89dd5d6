"""Documents in other words, by a T5 that paraphrases."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.checks import check_integer, check_range


class T5Paraphraser:
    """Says documents in other words: maps a list of strings to one as long.

    The paraphrases of Dong (2025, section 3.4), whose probe learns from them in place
    of the documents that seeds have labelled; their rows (`TextReader.rows`) are the
    `probe_tokens` of `SeedSupervision.fit`. Any other function of lists of strings
    does as well.

    Args:
        model: A `keras_hub.models.T5Seq2SeqLM` that was trained to paraphrase, with a
            preprocessor; or a folder that its `from_preset` reads.
        prompt: Put before each document.
        temperature: Of the draws, positive; the thesis' code has 4.
        top_k: Tokens that are drawn from at most.
        top_p: Least share of the probability that they have, in (0, 1].
        length: Tokens of a paraphrase at most.
        batch_size: Documents at once.
        seed: Of the draws, the same in each call.

    Raises:
        ValueError: If a number is out of range, or it is no such model.
        FileNotFoundError: If the folder is not there.
    """

    def __init__(
        self,
        model: Any,
        *,
        prompt: str = "paraphrase: ",
        temperature: float = 4.0,
        top_k: int = 120,
        top_p: float = 0.95,
        length: int = 128,
        batch_size: int = 16,
        seed: int = 0,
    ) -> None:
        name = type(self).__name__
        check_range(name, 1e-6, 1e6, temperature=temperature)
        check_range(name, 1e-6, 1.0, top_p=top_p)
        for argument, value in (
            ("top_k", top_k),
            ("length", length),
            ("batch_size", batch_size),
        ):
            check_integer(name, argument, value, 1)
        check_integer(name, "seed", seed, 0)
        # Importing it takes seconds.
        from keras_hub.models import T5Seq2SeqLM
        from keras_hub.samplers import TopPSampler

        if isinstance(model, str | pathlib.Path):
            model = _read(name, pathlib.Path(model))
        if not isinstance(model, T5Seq2SeqLM) or model.preprocessor is None:
            raise ValueError(
                f"{name}: expected a keras_hub.models.T5Seq2SeqLM with a preprocessor, "
                f"found {type(model).__name__}."
            )
        self.model = model
        self.prompt = prompt
        self.length = length
        self.batch_size = batch_size
        size = model.backbone.vocabulary_size
        self._sampler = TopPSampler(
            p=top_p, k=min(top_k, size), seed=seed, temperature=temperature
        )
        self._start = np.array(self._sampler.seed_generator.state)
        model.compile(sampler=self._sampler)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Returns a paraphrase of each text; of one without a word itself."""
        found = list(texts)
        rows = [place for place, text in enumerate(found) if text.strip()]
        self._sampler.seed_generator.state.assign(self._start)
        for first in range(0, len(rows), self.batch_size):
            own = rows[first : first + self.batch_size]
            # Batches of one size are traced once.
            padded = own + own[-1:] * (self.batch_size - len(own))
            given = [self.prompt + " ".join(found[row].split()) for row in padded]
            said = self.model.generate(
                {"encoder_text": given, "decoder_text": [""] * len(given)},
                max_length=self.length,
            )
            for row, text in zip(own, said, strict=False):
                found[row] = str(text)
        return found


def _read(name: str, folder: pathlib.Path) -> keras.Model:
    """Returns the model of a folder."""
    from keras_hub.models import T5Seq2SeqLM

    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"{name}: {folder} has no config.json; expected a folder of KerasHub's T5."
        )
    try:
        return T5Seq2SeqLM.from_preset(str(folder))
    except (KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{name}: {folder} is no T5 that KerasHub reads: {reason}."
        ) from error

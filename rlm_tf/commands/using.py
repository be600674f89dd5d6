"""What is done with a trained model: evaluate, score, generate, export."""

from __future__ import annotations

import math
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from rlm_tf import evaluation
from rlm_tf.command_line.quiet import native_silence
from rlm_tf.commands import model_folder
from rlm_tf.commands.report import writing
from rlm_tf.commands.settings import (
    EvaluateSettings,
    ExportSettings,
    GenerateSettings,
    ScoreSettings,
    check_folder,
)
from rlm_tf.commands.training import measuring, reading, vocabularies
from rlm_tf.data import Vocabulary
from rlm_tf.data.text.corpora import encoded_corpus
from rlm_tf.data.text.tokenisation import SUBWORD_RULES
from rlm_tf.serving import export_language_model

# Of an n-gram that is served alone.
_LEAST_FLOOR = 1e-6


def evaluate(settings: EvaluateSettings) -> None:
    """Prints how well a trained model predicts a text."""
    text = reading.read_text(str(settings.text))
    trained = model_folder.load_folder(settings.model, "rlm_tf evaluate")
    vocabulary = trained.vocabulary
    name = str(settings.text)
    # One text is all three splits.
    corpus = encoded_corpus(
        name,
        dict.fromkeys(reading.SPLITS, text),
        vocabulary,
        dict.fromkeys(reading.SPLITS, name),
    )
    assert corpus.num_bytes is not None and corpus.num_words is not None
    held = measuring.Text(corpus.test, corpus.num_bytes.test, corpus.num_words.test)
    eos = vocabulary.eos_id
    log_p = measuring.n_gram_log_probs(trained.n_gram, held, eos)
    temperatures = list(dict.fromkeys((1.0, trained.temperature)))
    at = [
        splits["test"]
        for splits in measuring.model_log_probs(
            trained.model, {"test": held}, temperatures, eos
        )
    ]
    found = {"n-gram": log_p, "model": at[0]}
    if trained.temperature != 1.0:
        found["model, temperature"] = at[1]
    log_q = at[-1]
    if trained.mu is not None:
        found["mixture"] = evaluation.interpolate(log_q, log_p, trained.mu)
    print(f"{name}: {len(held.tokens):,} tokens, {len(text):,} bytes")
    assert corpus.summary is not None
    for line in corpus.summary.warnings():
        print(f"warning: {line}")
    if vocabulary.normalises:
        print(vocabularies.NORMALISED)
    rows = [("model", "perplexity", "per word", "bits/byte")]
    for model, log_probs in found.items():
        result = held.perplexity(log_probs)
        rows.append(
            (
                model,
                f"{result.perplexity:.2f}",
                writing.per_word(result.perplexity_per_word),
                f"{result.bits_per_byte:.3f}",
            )
        )
    print("\n".join(writing.markdown_table(rows)))


def score(settings: ScoreSettings) -> None:
    """Scores the lines of standard input."""
    loaded = load_served(settings.model, "rlm_tf score")
    with native_silence():
        vocabulary = Vocabulary.load(
            pathlib.Path(str(settings.model)) / model_folder.VOCABULARY
        )
    print("nats\ttokens\tbits_per_byte\ttext")
    for number, lines in _batches(sys.stdin.buffer, settings.batch_size):
        try:
            _show_scores(loaded, vocabulary, number, lines)
        except ValueError:
            # Those before the line that is at fault are scored, and it is named.
            for place, line in enumerate(lines):
                _show_scores(loaded, vocabulary, number + place, [line])


def _show_scores(
    loaded: Any, vocabulary: Vocabulary, number: int, lines: list[bytes]
) -> None:
    answer = _asked(loaded.score, tf.constant(lines), where=f"line {number}")
    totals, lengths = answer["total"].numpy(), answer["lengths"].numpy()
    for line, total, length in zip(lines, totals, lengths, strict=True):
        text = line.decode("utf-8", "replace")
        size = len(line)
        if vocabulary.normalises:
            size = len(vocabulary.decode(vocabulary.encode(text)).encode())
        bits = -float(total) / math.log(2) / max(size, 1)
        print(f"{total:.4f}\t{length}\t{bits:.4f}\t{text}", flush=True)


def generate(settings: GenerateSettings) -> None:
    """Prints continuations of a text."""
    loaded = load_served(settings.model, "rlm_tf generate")
    for number in range(settings.samples):
        answer = _asked(
            loaded.generate,
            tf.constant([settings.prompt]),
            settings.max_tokens,
            settings.temperature,
            settings.top_k,
            settings.top_p,
            0.0,
            1.0,
            0.0,
            settings.seed + number,
            where="rlm_tf generate",
        )
        if settings.samples > 1:
            print(f"--- seed {settings.seed + number}")
        full, new = (
            answer[name].numpy()[0].decode("utf-8", "replace")
            for name in ("full_text", "text")
        )
        print(_continued(settings.prompt, full, new))


def _continued(prompt: str, full: str, new: str) -> str:
    """Returns a prompt and what was said after it.

    Args:
        prompt: As it was given.
        full: Both as the model read and wrote them; its words may be unknown.
        new: What was said.
    """
    if full.startswith(prompt):
        return full
    read = full.removesuffix(new)
    return prompt + read[len(read.rstrip()) :] + new


def export(settings: ExportSettings) -> None:
    """Writes a SavedModel of a trained model."""
    trained = model_folder.load_folder(settings.model, "rlm_tf export")
    mixture = trained.mixture if settings.mixture else None
    model: Any = trained.model
    options: dict[str, Any] = {"mixture": mixture, "temperature": trained.temperature}
    if settings.n_gram:
        n_gram = trained.n_gram
        # Validation text may need none, and other texts one.
        model, options = n_gram.with_floor(max(n_gram.floor, _LEAST_FLOOR)), {}
    with native_silence():
        path = export_language_model(
            model,
            trained.vocabulary,
            pathlib.Path(str(settings.output_dir)),
            overwrite=settings.overwrite,
            **options,
        )
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    what = "the model alone" if mixture is None else f"the mixture, mu {mixture[1]:.3f}"
    if settings.n_gram:
        what = "the n-gram alone"
    print(f"{path}: {what}, {size / 1e6:.1f} MB")
    if trained.vocabulary.rule in SUBWORD_RULES:
        print("import tensorflow_text before loading it")


def load_served(path: str | None, command: str) -> Any:
    """Returns the SavedModel of a folder."""
    folder = check_folder(path, command)
    # Registers the operations of subwords.
    import tensorflow_text  # noqa: F401

    place = folder / model_folder.SAVED_MODEL
    try:
        with native_silence():
            return tf.saved_model.load(str(place))
    except (OSError, tf.errors.OpError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ValueError(
            f"{place} could not be loaded ({reason}); `rlm_tf export --model={folder} "
            f"--output_dir={place} --overwrite` writes it anew."
        ) from error


def _asked(function: Any, *arguments: Any, where: str) -> dict[str, tf.Tensor]:
    """Returns an answer; raises ValueError with the reason of what was refused."""
    try:
        return function(*arguments)
    except tf.errors.InvalidArgumentError as error:
        reasons = re.findall("assertion failed: (.*)", error.message)
        reason = reasons[0] if reasons else " ".join(error.message.split())
        raise ValueError(f"{where}: {reason}") from error


def _batches(stream: Any, size: int) -> Iterator[tuple[int, list[bytes]]]:
    """Gives the number of the first line, and lines without their newlines."""
    lines: list[bytes] = []
    number = 0
    for line in stream:
        lines.append(line.rstrip(b"\r\n"))
        number += 1
        if len(lines) == size:
            yield number - size + 1, lines
            lines = []
    if lines:
        yield number - len(lines) + 1, lines

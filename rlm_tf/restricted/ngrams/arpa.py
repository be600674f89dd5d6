"""Restricted models from ARPA files, and ARPA files from restricted models."""

from __future__ import annotations

import gzip
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.restricted.ngrams.arpa_file import ArpaSection, parse_arpa
from rlm_tf.restricted.ngrams.atomic_file import write_atomically
from rlm_tf.restricted.ngrams.backoff_model import BackoffModel
from rlm_tf.restricted.ngrams.ngram_tables import ngrams_from_tables, tables_from_ngrams

_ZERO = -99.0
# Six digits of a logarithm leave sums of a large vocabulary within a thousandth.
_MOST_SUM = 1.01


@keras.saving.register_keras_serializable("rlm_tf")
class ArpaModel(BackoffModel):
    """A back-off model that `read_arpa` makes from a file.

    Args:
        order: Length of the longest n-grams.
        floor: Weight of the uniform distribution in `(1 - floor) P + floor / V`.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, order: int, floor: float = 0.0, **kwargs: Any) -> None:
        super().__init__(order, floor=floor, **kwargs)


def read_arpa(
    path: str | os.PathLike[str],
    vocabulary_tokens: Sequence[str],
    *,
    sentence_boundary: str | None = None,
    normalize: bool = True,
    floor: float = 0.0,
) -> ArpaModel:
    """Reads a model that KenLM, SRILM or `write_arpa` wrote.

    N-grams with words outside the vocabulary are dropped. Words of the vocabulary that
    the file lacks share the probability of the file's `<unk>` equally, unless `<unk>`
    is in the vocabulary itself; then they have probability zero.

    Such tools see one sentence a line: they predict `</s>` at its end and start the
    context of the next sentence from `<s>`. A stream has one word for both. With
    `sentence_boundary="<eos>"`, `<eos>` is `</s>` where it is predicted and `<s>` where
    it is context; a context that reaches back over a boundary backs off to it. Leave it
    out for a file that has `<eos>` as an ordinary word, such as those of `write_arpa`.

    Args:
        path: The file, plain or gzipped.
        vocabulary_tokens: The words of ids 0..V-1.
        sentence_boundary: The word that stands for `</s>` and `<s>`, or None.
        normalize: Whether each distribution is divided by its sum over the vocabulary.
            It is 1 already, up to rounding, if the vocabulary is that of the file;
            what sums to more than 1.01 is warned of, divided or not.
        floor: Weight of the uniform distribution in `(1 - floor) P + floor / V`.

    Returns:
        A model of the order of the file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is malformed (names file and line), if it shares no
            word with the vocabulary, or if the arguments contradict the file.
    """
    ids = {word.encode(): i for i, word in enumerate(_checked_words(vocabulary_tokens))}
    arpa = parse_arpa(path)
    targets = np.array([ids.get(word, -1) for word in arpa.words], np.int64)
    contexts = targets.copy()
    numbers = {word: number for number, word in enumerate(arpa.words)}
    if sentence_boundary is not None:
        boundary = sentence_boundary.encode()
        if boundary not in ids:
            raise ValueError(
                f"read_arpa: `sentence_boundary` {sentence_boundary!r} is not in the "
                "vocabulary."
            )
        for name in (b"<s>", b"</s>"):
            if name not in numbers or name in ids or boundary in numbers:
                raise ValueError(
                    f"{os.fspath(path)}: `sentence_boundary` needs <s> and </s> in the "
                    f"file and not in the vocabulary, and {sentence_boundary!r} in the "
                    "vocabulary and not in the file."
                )
        contexts[numbers[b"<s>"]] = targets[numbers[b"</s>"]] = ids[boundary]
    base = np.zeros(len(ids))
    unigrams = arpa.sections[0]
    predicted = targets >= 0
    base[targets[predicted]] = unigrams.probs[predicted]
    if not base.any():
        raise ValueError(
            f"{os.fspath(path)}: no word of the vocabulary has a probability in it."
        )
    missing = np.setdiff1d(np.arange(len(ids)), targets[predicted])
    if len(missing) and b"<unk>" in numbers and b"<unk>" not in ids:
        base[missing] = unigrams.probs[numbers[b"<unk>"]] / len(missing)

    remedy = (
        "are divided by their sum"
        if normalize
        else "stay as they are (`normalize=False`), and perplexities come out too low"
    )

    def check_sums(context_ids: np.ndarray, sums: np.ndarray) -> None:
        if not len(sums):
            return
        worst = int(np.argmax(sums))
        if sums[worst] > _MOST_SUM:
            context = " ".join(vocabulary_tokens[i] for i in context_ids[worst])
            after = f"after {context!r}" if context else "without a context"
            warnings.warn(
                f"{os.fspath(path)}: probabilities {after} sum to {sums[worst]:.4g}, "
                f"expected at most 1 ({np.sum(sums > _MOST_SUM)} of {len(sums)} "
                f"contexts of {context_ids.shape[1]} words); they {remedy}. Is the "
                "file of the tool that it seems to be from?",
                stacklevel=4,
            )

    model = ArpaModel(len(arpa.sections), floor=floor)
    model.set_tables(
        tables_from_ngrams(
            base,
            [_mapped(s, contexts, targets, False) for s in arpa.sections[1:]],
            [_mapped(s, contexts, targets, True) for s in arpa.sections[:-1]],
            normalize=normalize,
            sums_found=check_sums,
        )
    )
    return model


def write_arpa(
    model: BackoffModel,
    vocabulary_tokens: Sequence[str],
    path: str | os.PathLike[str],
) -> None:
    """Writes a fitted model as an ARPA file that KenLM and SRILM read.

    Interpolated probabilities are written whole and the interpolation weights become
    back-off weights, which gives the same distributions. The words keep their names:
    `<eos>` is an ordinary word to the readers, which may occur within a context, unlike
    `</s>`. The entries `<unk>`, `<s>` and `</s>` that the tools demand are added with
    probability zero, written as -99, where the vocabulary lacks them. Score with KenLM
    without its own sentence marks; it reads no model of order 1.

    Args:
        model: A fitted model without floor.
        vocabulary_tokens: The words of ids 0..V-1.
        path: Where to write; gzipped if the name ends in `.gz`. The file appears when
            it is complete.

    Raises:
        ValueError: If the model has no tables, or a floor (which has no back-off form),
            or if the words are not V different ones without white space.
    """
    if model.floor:
        raise ValueError(
            "write_arpa: a model with a floor has no back-off form; found `floor` "
            f"{model.floor}."
        )
    tables = model.tables()
    words = _checked_words(vocabulary_tokens)
    if len(words) != len(tables.base):
        raise ValueError(
            f"write_arpa: the model has {len(tables.base)} words, `vocabulary_tokens` "
            f"has {len(words)}."
        )
    document = _document(ngrams_from_tables(tables), words)
    with write_atomically(path) as file:
        if os.fspath(path).endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                packed.writelines(line.encode() for line in document)
        else:
            file.writelines(line.encode() for line in document)


def _document(sections: list[ArpaSection], words: list[str]) -> Iterator[str]:
    added = [word for word in ("<unk>", "<s>", "</s>") if word not in set(words)]
    yield "\\data\\\n"
    for n, section in enumerate(sections, 1):
        yield f"ngram {n}={len(section.probs) + (len(added) if n == 1 else 0)}\n"
    for n, section in enumerate(sections, 1):
        yield f"\n\\{n}-grams:\n"
        if n == 1:
            yield from (f"{_ZERO:.0f}\t{word}\n" for word in added)
        yield from _lines(section, words)
    yield "\n\\end\\\n"


def _lines(section: ArpaSection, words: list[str]) -> Iterator[str]:
    with np.errstate(divide="ignore"):
        log_probs = np.clip(np.log10(section.probs), _ZERO, 0.0)
        log_backoff = np.maximum(np.log10(section.backoff), _ZERO)
    for ngram, prob, backoff in zip(
        section.ngrams.tolist(), log_probs.tolist(), log_backoff.tolist(), strict=True
    ):
        line = f"{prob:.9g}\t{' '.join([words[i] for i in ngram])}"
        yield f"{line}\n" if backoff != backoff else f"{line}\t{backoff:.9g}\n"


def _checked_words(vocabulary_tokens: Sequence[str]) -> list[str]:
    words = list(vocabulary_tokens)
    if len(set(words)) != len(words) or not words:
        raise ValueError("`vocabulary_tokens` must be different words, at least one.")
    for i, word in enumerate(words):
        if [word.encode()] != word.encode().split():
            raise ValueError(
                f"`vocabulary_tokens` must be words without white space; word {i} is "
                f"{word!r}."
            )
    return words


def _mapped(
    section: ArpaSection, contexts: np.ndarray, targets: np.ndarray, as_contexts: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Returns n-grams in our ids, and probabilities or weights; drops what has none."""
    ids = contexts[section.ngrams]
    if not as_contexts:
        ids[:, -1] = targets[section.ngrams[:, -1]]
    values = section.backoff if as_contexts else section.probs
    kept = (ids >= 0).all(axis=1) & ~np.isnan(values)
    return ids[kept], values[kept]

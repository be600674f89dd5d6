"""What a person should look at: seeds, conflicts, likely mistakes, new seeds."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from rlm_tf.labelling import Matches, SeedRule, WordList, seed_statistics, suggest_seeds
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.models import TextClassifier
from rlm_tf.models.text_classifiers.stages import log_probs_of

_CONFLICTS, _DOUBTFUL, _DECIDING, _SUGGESTED = 10, 20, 5, 10
# A seed is harmful if of so many different documents that it alone labels, and in this
# share of them, a classifier that learnt from the others says another class.
_LEAST_ALONE, _HARMFUL = 5, 0.5
# Of a prediction that new seeds are looked for in.
_SURE = 0.5


class Said(NamedTuple):
    """What a classifier says.

    Attributes:
        model: The classifier.
        tokens: int `[N, T]`, the documents.
        probs: float `[N, C]`.
        labels: int `[N]`, -1 of documents without a word.
    """

    model: TextClassifier
    tokens: np.ndarray
    probs: np.ndarray
    labels: np.ndarray


def seeds_of(
    rule: SeedRule,
    matches: Matches,
    texts: list[str],
    judged: np.ndarray | None,
    truth: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """Returns the numbers of each seed, and whether it seems harmful.

    Args:
        rule: The rule.
        matches: What it says.
        texts: The documents.
        judged: float `[N, C]`, what probes say of documents that they have not learnt
            from, words deleted, nan where nothing is known; None: not known.
        truth: int `[N]`, true labels, -1 of documents without; None: there are none.
    """
    has = (matches.hits > 0).tocsc()
    alone = np.asarray((matches.hits > 0).sum(axis=1)).ravel() == 1
    found = []
    for number, own in enumerate(seed_statistics(rule, matches)):
        first, last = has.indptr[number : number + 2]
        rows, index = has.indices[first:last], rule.seeds[number].class_index
        numbers = own._asdict()
        if truth is not None and (known := truth[rows][truth[rows] >= 0]).size:
            numbers["accuracy"] = float(np.mean(known == index))
            numbers["true_labels"] = len(known)
        rows = rows[alone[rows] & (matches.labels[rows] >= 0)]
        doubted, is_harmful = None, False
        if judged is not None:
            rows = rows[np.isfinite(judged[rows]).all(axis=1)]
            if len(rows):
                doubted = float(np.mean(judged[rows].argmax(axis=1) != index))
                # The same text many times says as much as once.
                distinct = len({texts[row] for row in rows.tolist()})
                is_harmful = distinct >= _LEAST_ALONE and doubted > _HARMFUL
        found.append({**numbers, "doubted": doubted, "is_harmful": is_harmful})
    return found


def conflicts(
    rule: SeedRule, matches: Matches, ids: list[str], texts: list[str]
) -> list[dict[str, Any]]:
    """Returns pairs of seeds of two classes that most documents have, one of each."""
    counts: Counter[tuple[int, int]] = Counter()
    example: dict[tuple[int, int], int] = {}
    hits = matches.hits.tocsr()
    for row in range(hits.shape[0]):
        seeds = sorted(hits.indices[hits.indptr[row] : hits.indptr[row + 1]].tolist())
        for place, one in enumerate(seeds):
            for other in seeds[place + 1 :]:
                if rule.seeds[one].class_index != rule.seeds[other].class_index:
                    counts[one, other] += 1
                    example.setdefault((one, other), row)
    found = []
    for (one, other), number in counts.most_common(_CONFLICTS):
        row = example[one, other]
        found.append(
            {
                "seeds": [rule.seeds[seed].text for seed in (one, other)],
                "classes": [
                    rule.class_names[rule.seeds[seed].class_index]
                    for seed in (one, other)
                ],
                "documents": number,
                "id": ids[row],
                "text": texts[row],
            }
        )
    return found


def doubtful(
    rule: SeedRule, matches: Matches, said: Said, ids: list[str], texts: list[str]
) -> list[dict[str, Any]]:
    """Returns documents whose seeds say another class than the classifier surely."""
    best, sure = said.probs.argmax(axis=1), said.probs.max(axis=1)
    wrong = np.flatnonzero((matches.labels >= 0) & (best != matches.labels))
    worst = wrong[np.argsort(-sure[wrong], kind="stable")][:_DOUBTFUL]
    names = rule.class_names
    return [
        {
            "id": ids[row],
            "text": texts[row],
            "by_seeds": names[matches.labels[row]],
            "said": names[best[row]],
            "probability": float(sure[row]),
            "words": deciding_words(
                said.model, said.tokens[row], int(best[row]), int(matches.labels[row])
            ),
        }
        for row in worst.tolist()
    ]


def deciding_words(
    model: TextClassifier, tokens: np.ndarray, said: int, other: int
) -> list[str]:
    """Returns words without which a document would be most less of a class.

    Each word, or piece, is left out wherever it is, and the fall of ln P(said) -
    ln P(other) seen.
    """
    reader = model.reader
    assert reader is not None
    length = len(tokens)
    own = [
        token
        for token in dict.fromkeys(tokens.tolist())
        if token != PADDING and token not in reader.spared
    ]
    rows = [tokens]
    for token in own:
        rest = tokens[tokens != token]
        rows.append(np.pad(rest, (0, length - len(rest)), constant_values=PADDING))
    log_probs = log_probs_of(model, np.array(rows, np.int32))
    odds = log_probs[:, said] - log_probs[:, other]
    falls = odds[0] - odds[1:]
    order = np.argsort(-falls, kind="stable")[:_DECIDING]
    words = [_word(reader.words, own[place]) for place in order.tolist()]
    return [
        word
        for word, place in zip(words, order.tolist(), strict=True)
        if word and falls[place] > 0
    ]


def _word(words: Any, token: int) -> str:
    if not isinstance(words, WordList):
        return str(words.surface(token)).replace("\u2581", "").strip()
    first = len(words) - len(words.words)
    return words.words[token - first] if token >= first else ""


def suggested(rule: SeedRule, matches: Matches, said: Said) -> list[dict[str, Any]]:
    """Returns words that may be good seeds; of readers of pieces none."""
    reader = said.model.reader
    if reader is None or not isinstance(reader.words, WordList):
        return []
    labels = np.where(said.probs.max(axis=1) >= _SURE, said.labels, -1)
    found = suggest_seeds(
        rule,
        reader.words,
        said.tokens,
        labels,
        labelled=matches.labels >= 0,
        most=_SUGGESTED,
    )
    return [own._asdict() for own in found]

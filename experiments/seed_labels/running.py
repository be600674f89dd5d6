"""The runs of the study, and their rows."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any

import numpy as np

from experiments.kit import machine
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.seed_documents import SeedDocuments, read_documents
from experiments.seed_labels.config import GRID, LabelsConfig
from rlm_tf.labelling import (
    Matches,
    SeedRule,
    WordList,
    best_deletion_ratio,
    deletion_counts,
    fixed_count_deletion_rate,
    rule_statistics,
    seed_agreement,
    seed_deletion_rate,
    seed_places,
    seed_statistics,
    suggest_seeds,
)
from rlm_tf.labelling.rule_statistics import english_stop_words, spread
from rlm_tf.labelling.seed_tokens import words_of

NEEDS = ("name", "set", "view", "rules")
RULES = {
    "published, first": ("published", "first"),
    "published, abstain": ("published", "abstain"),
    "words, abstain": ("words", "abstain"),
}
_LENGTH = 300
# Documents that are looked at together.
_ROWS = 256
_RATIOS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)


def runs_of(config: LabelsConfig, seeds: list[int]) -> list[Run]:
    """Returns a run for each set and view; nothing is drawn but what is deleted."""
    common = dataclasses.asdict(config)
    for listed in ("sets", "views"):
        common.pop(listed)
    found = []
    for name in config.sets:
        # Other sets have one view.
        views = config.views if name.startswith("20news") else config.views[:1]
        for view in views:
            own = {"sets": name, "views": view}
            found.append(
                Run(
                    f"{name}-{view.replace('+', '-')}",
                    {**common, **own, "seed": seeds[0]},
                    functools.partial(read_documents, name, view=view),
                    functools.partial(_row, config, name, view, seeds[0]),
                    NEEDS,
                )
            )
    return found


def _row(
    config: LabelsConfig,
    name: str,
    view: str,
    seed: int,
    documents: SeedDocuments,
    folder: pathlib.Path,
) -> dict[str, Any]:
    began = time.perf_counter()
    rules = {}
    for title, (tokenisation, ties) in RULES.items():
        rule = documents.rule(tokenisation, ties)
        rules[title] = _rule(rule, rule.match(documents.texts), documents)
    rule = documents.rule()
    matches = rule.match(documents.texts)
    agreement = seed_agreement(rule, matches)
    _write_examples(config, rule, matches, documents, seed, folder)
    return {
        "name": folder.name,
        "command": command_of(GRID, config, seed, sets=name, views=view),
        "set": name,
        "view": view,
        "rules": rules,
        "seeds": [own._asdict() for own in _seeds(rule, matches, documents)],
        "agreement": agreement._asdict(),
        "deletion": _deletion(rule, matches, documents),
        "left_out": _left_out(config, documents),
        "seconds": time.perf_counter() - began,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _seeds(rule: SeedRule, matches: Matches, documents: SeedDocuments) -> list[Any]:
    return seed_statistics(rule, matches, documents.labels)


def _rule(rule: SeedRule, matches: Matches, documents: SeedDocuments) -> dict[str, Any]:
    """Returns Table 3.1, and counts of classes."""
    found = rule_statistics(rule, documents.texts, matches, documents.labels)
    counts = np.bincount(
        matches.labels[matches.labels >= 0], minlength=len(rule.class_names)
    )
    assert found.transitions is not None
    return {
        "documents": found.documents,
        "classes": len(rule.class_names),
        "labelled": found.labelled,
        "tied": found.tied,
        "noise": found.noise,
        "length": list(found.length),
        "indicative": list(found.indicative),
        "class_counts": dict(zip(rule.class_names, counts.tolist(), strict=True)),
        "transitions": found.transitions.tolist(),
        "dead": [own.text for own in rule.dead_seeds],
    }


def _deletion(
    rule: SeedRule, matches: Matches, documents: SeedDocuments
) -> dict[str, Any]:
    """Returns the best ratio, and rates by ratio: Eq. 3.2 and counted in documents.

    Counted: the mean over labelled documents, whole, of the probability that all seeds
    of the label are deleted, and not all words that are no stop words and no seeds;
    were each word deleted by itself ("counted"), or a number of them, as it is done
    ("fixed", at the best ratio).
    """
    found = rule_statistics(rule, documents.texts, matches)
    indicative = found.indicative.median
    known = np.flatnonzero(matches.labels >= 0)
    stops = frozenset(english_stop_words())
    sizes, seeds, telling = [], [], []
    for first in range(0, len(known), _ROWS):
        rows = known[first : first + _ROWS]
        texts = [documents.texts[row] for row in rows.tolist()]
        words = [words_of(text) for text in texts]
        own = [len(each) for each in words]
        places = seed_places(rule, texts, max(own), matches.labels[rows])
        sizes += own
        seeds += places.sum(axis=1).tolist()
        telling += [sum(word not in stops for word in each) for each in words]
    others = np.maximum(np.subtract(telling, seeds), 0)
    best = best_deletion_ratio(1, indicative)
    deleted = deletion_counts(sizes, best)
    number = np.array(seeds)
    return {
        "indicative": indicative,
        "best": best,
        "ratios": [*_RATIOS, best],
        "rates": [seed_deletion_rate(p, 1, indicative) for p in (*_RATIOS, best)],
        "counted": [
            float(np.mean(p**number * (1 - p**others))) for p in (*_RATIOS, best)
        ],
        "fixed": float(
            np.mean(
                [
                    fixed_count_deletion_rate(n, m, s, o)
                    for n, m, s, o in zip(
                        sizes, deleted.tolist(), seeds, others.tolist(), strict=True
                    )
                ]
            )
        ),
        "seeds_of_a_document": list(spread(seeds)),
    }


def _left_out(config: LabelsConfig, documents: SeedDocuments) -> dict[str, Any]:
    """Returns how often a seed that is left out is among the words suggested."""
    words = WordList.build(documents.texts)
    tokens = words.rows(documents.texts, _LENGTH)
    found, looked = [], 0
    for name, own in documents.seeds.items():
        for seed in own:
            rest = [other for other in own if other != seed]
            if not rest:
                continue
            rule = SeedRule({**documents.seeds, name: rest})
            labels = rule.match(documents.texts).labels
            suggested = suggest_seeds(
                rule, words, tokens, labels, most=config.suggested
            )
            looked += 1
            if any(s.class_name == name and s.text == seed for s in suggested):
                found.append(seed)
    return {"among": config.suggested, "looked_for": looked, "found": found}


def _write_examples(
    config: LabelsConfig,
    rule: SeedRule,
    matches: Matches,
    documents: SeedDocuments,
    seed: int,
    folder: pathlib.Path,
) -> None:
    """Writes documents before and after deletion beside the run, not into rows."""
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(matches.labels >= 0)
    rows = rng.choice(known, min(config.examples, len(known)), replace=False)
    statistics = rule_statistics(rule, documents.texts, matches)
    ratio = best_deletion_ratio(1, statistics.indicative.median)
    lines = [f"Random deletion of {100 * ratio:.1f} % of the words.", ""]
    for row in rows.tolist():
        words = words_of(documents.texts[row])
        number = len(words) - int(deletion_counts([len(words)], ratio)[0])
        kept = np.sort(rng.permutation(len(words))[:number])
        places = seed_places(
            rule, [documents.texts[row]], max(len(words), 1), matches.labels[[row]]
        )[0]
        lines += [
            f"- by seeds {rule.class_names[matches.labels[row]]}, truly "
            f"{rule.class_names[documents.labels[row]]}",
            f"  - {' '.join(words[:60])}",
            f"  - at random: {' '.join(words[place] for place in kept)}",
            "  - its seeds: "
            + " ".join(
                w for w, is_seed in zip(words, places, strict=False) if not is_seed
            ),
        ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "examples.md").write_text("\n".join(lines) + "\n", "utf-8")

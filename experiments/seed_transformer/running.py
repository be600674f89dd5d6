"""The runs of the study, and their rows."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any, NamedTuple

import numpy as np

from experiments.kit import machine, run_files
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.seed_documents import SeedDocuments, read_documents
from experiments.kit.seed_procedure import (
    best_ratio,
    deletion_of,
    drawn,
    packed,
    scores,
)
from experiments.seed_transformer import projecting
from experiments.seed_transformer.config import ARMS, GRID, TransformerConfig
from experiments.seed_transformer.encoders import Read, classifier, read_encoder
from rlm_tf.command_line.json_files import write_json
from rlm_tf.labelling import SeedRule, seed_pieces
from rlm_tf.models import (
    SeedSupervision,
    T5Paraphraser,
    TextClassifier,
    TextReader,
    replace_words,
)
from rlm_tf.models.text_classifiers.stages import log_probs_of
from rlm_tf.training import LinearRate

NEEDS = ("name", "set", "arm", "seed", "judged", "right")
_JUDGED, _HELD_OUT, _WARM_UP = 0.15, 0.15, 0.06


class Prepared(NamedTuple):
    """Documents as pieces.

    Attributes:
        documents: All of them.
        read: The encoder.
        reader: What made pieces of them.
        tokens: int `[N, T]`.
        labels: int `[N]`, of the published rule.
        places: bool `[N, T]`, seeds of the own label.
        starts: bool `[N, T]`, pieces that begin a word.
        published: The rule.
    """

    documents: SeedDocuments
    read: Read
    reader: TextReader
    tokens: np.ndarray
    labels: np.ndarray
    places: np.ndarray
    starts: np.ndarray
    published: SeedRule


def runs_of(config: TransformerConfig, seeds: list[int]) -> list[Run]:
    """Returns a run for each set, arm and seed."""
    common = dataclasses.asdict(config)
    # Where an encoder is says nothing of it.
    common["encoder"] = pathlib.Path(config.encoder).name
    common["paraphrases"] = pathlib.Path(config.paraphrases).name
    # Of runs none were projected; rows of before do not say so.
    common.pop("project_steps")
    if config.project_steps:
        return [_projected(config, seed, common) for seed in seeds]
    found = []
    for name in config.sets:
        read = functools.cache(functools.partial(_prepare, config, name))
        for seed in seeds:
            for arm in config.arms:
                chosen = {"sets": name, "arms": arm}
                settings = {**common, **chosen, "seed": seed}
                found.append(
                    Run(
                        f"{name}-{arm}-seed{seed}",
                        settings,
                        read,
                        functools.partial(_row, config, name, arm, seed, settings),
                        NEEDS,
                    )
                )
    return found


def _projected(config: TransformerConfig, seed: int, settings: dict[str, Any]) -> Run:
    def train(_: None, folder: pathlib.Path) -> dict[str, Any]:
        return {
            "name": folder.name,
            "command": command_of(GRID, config, seed),
            "arm": "projected",
            "seed": seed,
            **projecting.project(config, seed),
            "machine": machine.environment()["machine"],
            "commit": machine.commit(),
        }

    own = {**settings, "seed": seed, "project_steps": config.project_steps}
    return Run(f"projected-seed{seed}", own, lambda: None, train, ("name", "hours"))


def _prepare(config: TransformerConfig, name: str) -> Prepared:
    documents = read_documents(name)
    read = read_encoder(config, documents.texts)
    reader = TextReader(read.vocabulary, config.length)
    tokens = reader.rows(documents.texts).tokens
    published = documents.rule("published", "first")
    matches = published.match(documents.texts)
    pieces = seed_pieces(documents.rule(), read.vocabulary, tokens, matches.labels)
    return Prepared(
        documents,
        read,
        reader,
        tokens,
        matches.labels,
        pieces.places,
        pieces.starts,
        published,
    )


def _row(
    config: TransformerConfig,
    name: str,
    arm: str,
    seed: int,
    settings: dict[str, Any],
    data: Prepared,
    folder: pathlib.Path,
) -> dict[str, Any]:
    began = time.perf_counter()
    # Whose trainings there are.
    write_json(folder / "config.json", settings)
    truth = data.documents.labels
    rng = np.random.default_rng(seed)
    judged = drawn(truth, np.ones(len(truth), bool), _JUDGED, rng)
    held_out = drawn(truth, ~judged, _HELD_OUT / (1 - _JUDGED), rng)
    pool = np.flatnonzero(~held_out)
    read = _rewritten(config, arm, data, seed)
    # Of what trainings may see, and as much of it as is read: a word a piece at least.
    seen = [data.documents.texts[row] for row in pool]
    ratio = best_ratio(data.published, seen, config.length)
    outcome = _supervision(config, arm, data, seed, ratio).fit(
        data.tokens[pool],
        data.labels[pool],
        places=data.places[pool],
        starts=data.starts[pool],
        spared=data.reader.spared,
        probe_tokens=None if read is None else read[pool],
        folder=folder / run_files.TRAININGS,
    )
    chosen = outcome.selected
    wrong = data.labels[pool][chosen] != truth[pool][chosen]
    rounds = np.full([len(outcome.rounds), len(truth)], -1)
    rounds[:, pool] = outcome.rounds
    out = np.flatnonzero(held_out)
    said = log_probs_of(outcome.model, data.tokens[out]).argmax(axis=1)
    return {
        "name": folder.name,
        "command": command_of(GRID, config, seed, sets=name, arms=arm),
        "set": name,
        "arm": arm,
        "seed": seed,
        "encoder": pathlib.Path(config.encoder).name,
        "selected": int(chosen.sum()),
        "selected_noise": float(wrong.mean()),
        "judged": [scores(truth[judged], each[judged]) for each in rounds],
        "held_out": scores(truth[out], said),
        "ratio": ratio,
        "right": packed(rounds[-1][judged] == truth[judged]),
        "held_out_right": packed(said == truth[out]),
        "seconds": time.perf_counter() - began,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _rewritten(
    config: TransformerConfig, arm: str, data: Prepared, seed: int
) -> np.ndarray | None:
    """Returns what the probe reads in place of the documents, int `[N, T]`, or None.

    Raises:
        ValueError: If there is no head of masked words, or there are not as many lines
            as documents.
    """
    kind = ARMS[arm].get("reads")
    if kind is None:
        return None
    if kind == "replaced":
        if data.read.masked_model is None:
            raise ValueError(
                f"--encoder={config.encoder} has no head of masked words, which the "
                f"arm {arm} needs."
            )
        return replace_words(
            data.read.masked_model, data.tokens, ratio=config.replaced, seed=seed
        )
    path = pathlib.Path(config.paraphrases)
    if path.is_dir():
        lines = T5Paraphraser(path, length=config.length, seed=seed)(
            data.documents.texts
        )
    else:
        lines = path.read_text("utf-8").splitlines()
    if len(lines) != len(data.tokens):
        raise ValueError(
            f"--paraphrases={config.paraphrases} must have a line for each of the "
            f"{len(data.tokens):,} documents, found {len(lines):,}."
        )
    return data.reader.rows(lines).tokens


def _supervision(
    config: TransformerConfig, arm: str, data: Prepared, seed: int, ratio: float
) -> SeedSupervision:
    kind = ARMS[arm]

    def make(dropout: tuple[str, bool] | None, own: int) -> TextClassifier:
        names = data.documents.class_names
        return classifier(config, data.read.encoder, data.reader, names, dropout, own)

    return SeedSupervision(
        functools.partial(make, None),
        probe=functools.partial(make, kind.get("dropout")),
        select=kind["select"],
        fraction=config.fraction,
        probe_deletion=deletion_of(kind.get("probe"), ratio),
        deletion=deletion_of(kind.get("final"), ratio),
        epochs=config.epochs,
        batch_size=config.batch_size,
        iterations=config.iterations,
        last_share=config.share,
        callbacks=lambda steps: [LinearRate(steps, int(_WARM_UP * steps))],
        seed=seed,
    )

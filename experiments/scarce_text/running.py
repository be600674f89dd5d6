"""The runs of the study: trials, arms, simple peers, ensembles, published models."""

from __future__ import annotations

import functools
import pathlib
import time
from typing import Any

import numpy as np

from experiments.kit import machine
from experiments.kit.grids import command_of
from experiments.kit.mixture_judge import SPLITS, MixtureJudge, perplexity_of
from experiments.kit.run_list import Run
from experiments.kit.run_settings import text_digest
from experiments.kit.scores import comparable
from experiments.scarce_text.arms import ARMS, ENSEMBLE, PEERS
from experiments.scarce_text.choosing import ScarceRun
from experiments.scarce_text.config import GRID, ScarceConfig
from experiments.scarce_text.explaining import by_kind_of_token
from experiments.scarce_text.members import kept, members_of, save, twin_of
from experiments.scarce_text.projecting import hours_of
from experiments.scarce_text.report import NEEDS
from experiments.scarce_text.training import Prepared, prepare, trained
from rlm_tf import evaluation
from rlm_tf.command_line.json_files import write_json
from rlm_tf.models import count_parameters
from rlm_tf.restricted import KneserNey
from rlm_tf.training import TrainingDivergedError

# Of the test text, for the errors of ensembles, which have no seeds of their own.
_BLOCKS = 50
# What a trial that diverged has not got.
_SCORES = ("mu", *SPLITS, *(f"mixed_{split}" for split in SPLITS))


def runs_of(config: ScarceConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid; trials and n-grams have one seed."""
    one, every = (seeds[0],), tuple(seeds)
    runs: list[ScarceRun] = []
    for fraction in config.fractions:
        for arm in config.arms:
            if config.trials:
                runs += [
                    ScarceRun(config, arm, fraction, number, one)
                    for number in config.trials
                ]
            elif arm in PEERS:
                runs.append(ScarceRun(config, arm, fraction, 0, one))
            elif arm.startswith(ENSEMBLE):
                runs.append(ScarceRun(config, arm, fraction, 0, every))
            else:
                runs += [ScarceRun(config, arm, fraction, 0, (seed,)) for seed in seeds]
    return [
        Run(
            run.name,
            run.settings,
            functools.partial(prepare, run),
            functools.partial(_measure, run),
            NEEDS,
        )
        for run in runs
    ]


def _measure(
    run: ScarceRun, prepared: Prepared, folder: pathlib.Path
) -> dict[str, Any]:
    """Trains a model, or takes an n-gram or an ensemble; returns its row."""
    config, corpus = run.config, prepared.corpus
    write_json(folder / "config.json", run.settings)
    row: dict[str, Any] = {
        "name": folder.name,
        "command": command_of(
            GRID, config, ",".join(map(str, run.seeds)), **run.chosen
        ),
        "study": config.study,
        "arm": run.arm,
        "corpus": config.corpus,
        "fraction": run.fraction,
        "seed": run.seed,
        "trial": run.trial,
        "values": prepared.values,
        "train_tokens": len(prepared.text),
        "vocabulary": len(corpus.vocabulary),
        "text_sha256": text_digest(corpus),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
    if config.project_steps:
        row |= {"study": "projected", **dict.fromkeys(_SCORES)}
        row |= hours_of(prepared, config.project_steps)
    else:
        try:
            row |= _scores(run, prepared, folder)
        except TrainingDivergedError:
            if not run.trial:
                raise
            # The search goes on: no setting is worse.
            row |= {**dict.fromkeys(_SCORES), "diverged": True}
    return {**row, "finished": time.strftime("%Y-%m-%d")}


def _scores(run: ScarceRun, prepared: Prepared, folder: pathlib.Path) -> dict[str, Any]:
    config, corpus, text = run.config, prepared.corpus, prepared.text
    judge = MixtureJudge(corpus, text)
    row: dict[str, Any] = {}
    twin = twin_of(run, folder.parent)
    if twin is not None:
        row, log_q = twin
        save(folder, log_q)
    elif prepared.model is not None:
        with trained(run, prepared, folder) as cost:
            row |= {"parameters": count_parameters(prepared.model), **cost}
            log_q = judge.log_probs(prepared.model)
        save(folder, log_q)
    elif run.arm in PEERS:
        order = int(run.arm.rpartition("-")[2])
        n_gram = KneserNey(order).fit(text, len(corpus.vocabulary))
        log_q = judge.restricted_log_probs(n_gram)
    else:
        members = [kept(each) for each in members_of(run, folder.parent)]
        log_q = {
            split: np.logaddexp.reduce([each[split] for each in members])
            - np.log(len(members))
            for split in SPLITS
        }
        row["seeds"] = list(run.seeds)
        row["gain"] = _gain(judge, members, log_q)
    found = judge.scores_of(log_q)
    row |= {
        "mu": found["mu"],
        **{split: found[split]["alone"] for split in SPLITS},
        **{f"mixed_{split}": found[split]["mixed"] for split in SPLITS},
        "kinds": by_kind_of_token(judge, text, log_q, found["mu"]),
    }
    row |= comparable(corpus, {split: row[f"mixed_{split}"] for split in SPLITS})
    if not run.trial:
        bigram = KneserNey(2).fit(text, len(corpus.vocabulary))
        mixed = judge.scores_of(log_q, judge.restricted_log_probs(bigram))
        row["mixed_2"] = {split: mixed[split]["mixed"] for split in SPLITS}
    if config.study == "counted" or (run.arm in ARMS and ARMS[run.arm].counted):
        row["counted"] = _counted(judge, log_q)
    return row


def _counted(judge: MixtureJudge, log_q: Any) -> dict[str, Any]:
    """Returns scores of mixtures with n-grams of all of the training text."""
    corpus = judge.corpus
    found = {}
    for order in (2, 5):
        n_gram = KneserNey(order).fit(corpus.train, len(corpus.vocabulary))
        log_p = judge.restricted_log_probs(n_gram)
        found[f"kneser-ney-{order}"] = judge.scores_of(log_q, log_p)
    return found


def _gain(judge: MixtureJudge, members: list[Any], mean: Any) -> dict[str, Any]:
    """Returns what the mean of models gains over them, all mixed, on the test text.

    Returns:
        `nats` a token that the mean needs less than its members on average; `error`,
        the standard error of that over parts of the text; `ratio`, of the mean's
        perplexity to theirs, of which it is the geometric mean; `parts`, what the mean
        needs in each of these parts, nats a token.
    """
    log_p = judge.n_gram_log_probs

    def mixed(log_q: Any) -> np.ndarray:
        mu = evaluation.tune_interpolation(log_q["valid"], log_p["valid"])
        return np.asarray(evaluation.interpolate(log_q["test"], log_p["test"], mu))

    own = np.mean([mixed(each) for each in members], axis=0)
    ours = mixed(mean)
    theirs, parts = (
        np.array([np.mean(part) for part in np.array_split(each, _BLOCKS)])
        for each in (own, ours)
    )
    return {
        "nats": float(np.mean(ours - own)),
        "error": float(np.std(parts - theirs, ddof=1) / np.sqrt(_BLOCKS)),
        "ratio": perplexity_of(ours) / perplexity_of(own),
        "parts": [round(-float(part), 6) for part in parts],
    }

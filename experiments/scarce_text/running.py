"""The runs of the study: trials, arms, simple peers, ensembles, published models."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.kit import machine, run_files, run_flags
from experiments.kit.grids import command_of
from experiments.kit.mixture_judge import SPLITS, LogProbs, MixtureJudge
from experiments.kit.run_list import Run
from experiments.kit.run_settings import text_digest, training_text
from experiments.kit.tuning import suggested
from experiments.scarce_text.arms import (
    ARMS,
    ENSEMBLE,
    INITIAL,
    PEERS,
    PUBLISHED,
    SPACE,
    START,
    Values,
    chosen,
)
from experiments.scarce_text.building import (
    ZAREMBA_ROWS,
    compiled_model,
    noise_of,
    zaremba_model,
    zaremba_rate,
    zaremba_settings,
)
from experiments.scarce_text.config import GRID, ScarceConfig, trials_of
from experiments.scarce_text.explaining import by_kind_of_token
from experiments.scarce_text.report import NEEDS
from rlm_tf.averaging import TwoTailedAveraging
from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import (
    ContiguousBatches,
    Corpus,
    contiguous_batches,
    load_corpus,
    load_text_corpus,
)
from rlm_tf.file_errors import naming
from rlm_tf.models import count_parameters
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    DivergenceGuard,
    MetricsLog,
    ResumableBatches,
    read_metrics_log,
)

_SECONDS = 120.0
# Of the search.
_SEARCH_SEED = 1


class ScarceRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to.
        arm: Its name.
        fraction: Share of the training text.
        trial: Number of a trial, from 1 on; 0: none.
        seed: Of weights, dropout and noise.
    """

    config: ScarceConfig
    arm: str
    fraction: float
    trial: int
    seed: int

    @property
    def name(self) -> str:
        """Of its folder and its row."""
        kind = f"{self.config.study}-{self.arm}-{self.config.corpus}"
        part = "" if self.fraction == 1 else f"-{round(1 / self.fraction)}th"
        last = f"trial{self.trial}" if self.trial else f"seed{self.seed}"
        return f"{kind}{part}-{last}"

    @property
    def chosen(self) -> dict[str, Any]:
        """What the run has of settings that are lists."""
        found = {"arms": self.arm, "fractions": self.fraction}
        return {**found, "trials": self.trial} if self.trial else found

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run."""
        found = {**dataclasses.asdict(self.config), **self.chosen, "seed": self.seed}
        if self.arm in ARMS and not (self.trial and self.arm == "none"):
            found["values"] = _values_of(self)
        return found


def runs_of(config: ScarceConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of a grid; trials and n-grams have one seed."""
    runs: list[ScarceRun] = []
    for fraction in config.fractions:
        for arm in config.arms:
            if config.trials:
                known = range(1, trials_of(arm) + 1)
                own = [number for number in config.trials if number in known]
                runs += [ScarceRun(config, arm, fraction, n, seeds[0]) for n in own]
            elif arm in PEERS or arm.startswith(ENSEMBLE):
                runs.append(ScarceRun(config, arm, fraction, 0, seeds[0]))
            else:
                runs += [ScarceRun(config, arm, fraction, 0, seed) for seed in seeds]
    return [
        Run(
            run.name,
            run.settings,
            functools.partial(_prepare, run),
            functools.partial(_measure, run, seeds),
            NEEDS,
        )
        for run in runs
    ]


class Prepared(NamedTuple):
    """What a run needs.

    Attributes:
        corpus: The corpus.
        text: What is trained on.
        values: The arm's settings.
        batches: Of the text; None where nothing is trained.
        model: Compiled, or None.
    """

    corpus: Corpus
    text: np.ndarray
    values: Values
    batches: ContiguousBatches | None
    model: keras.Model | None


def _prepare(run: ScarceRun) -> Prepared:
    """Reads the corpus, and returns the compiled model of a run."""
    config = run.config
    keras.utils.set_random_seed(run.seed)
    corpus = read_corpus(config)
    rows = ZAREMBA_ROWS if run.arm in PUBLISHED else config.batch_size
    text = training_text(corpus, run.fraction, rows)
    if run.arm not in ARMS and run.arm not in PUBLISHED:
        return Prepared(corpus, text, {}, None, None)
    window = config.window
    if run.arm in PUBLISHED:
        window = zaremba_settings(run.arm)["window"]
    eos = corpus.vocabulary.eos_id
    batches = contiguous_batches(text, rows, window, prefix=eos)
    if run.arm in PUBLISHED:
        model = zaremba_model(run.arm, corpus, text, run.seed)
        return Prepared(corpus, text, {}, batches, model)
    values = _values_of(run)
    steps = batches.steps * config.epochs
    model = compiled_model(config, run.arm, values, corpus, text, run.seed, steps)
    return Prepared(corpus, text, values, batches, model)


def read_corpus(config: ScarceConfig) -> Corpus:
    """Returns the corpus of a grid, of words or of subwords learnt from it."""
    corpus = load_corpus(config.corpus)
    if not config.pieces:
        return corpus
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"{split}.txt" for split in ("train", *SPLITS)]
        for file in files:
            tokens = getattr(corpus, file.stem)
            file.write_text(corpus.vocabulary.decode(tokens), "utf-8")
        return load_text_corpus(
            *files, rule="sentencepiece-unigram", max_size=config.pieces
        )


def _values_of(run: ScarceRun) -> Values:
    """Returns the settings of an arm, or of one of its trials."""
    if not run.trial:
        return chosen(run.arm)
    if run.arm != "none":
        base = ARMS[run.arm].base
        own = ARMS[run.arm].trials[run.trial - 1]
        return dict(own) if base == run.arm else {**chosen(base), **own}
    tried = []
    _, rows = run_flags.folders()
    for number in range(1, run.trial):
        name = run._replace(trial=number).name
        if name not in rows:
            raise ValueError(
                f"trial {run.trial} follows from those before; {name} has no row in "
                f"{rows.folder}: make it first (--trials)."
            )
        row = rows.read(name, NEEDS)
        tried.append((row["values"], math.log(row["mixed_valid"])))
    if not tried:
        return dict(START)
    return suggested(SPACE, tried, initial=1 + INITIAL, seed=_SEARCH_SEED)


def _measure(
    run: ScarceRun, seeds: list[int], prepared: Prepared, folder: pathlib.Path
) -> dict[str, Any]:
    """Trains a model, or takes an n-gram or an ensemble; returns its row."""
    config, (corpus, text, values, _, model) = run.config, prepared
    write_json(folder / "config.json", run.settings)
    judge = MixtureJudge(corpus, text)
    row: dict[str, Any] = {
        "name": folder.name,
        "command": command_of(GRID, config, run.seed, **run.chosen),
        "study": config.study,
        "arm": run.arm,
        "corpus": config.corpus,
        "fraction": run.fraction,
        "seed": run.seed,
        "trial": run.trial,
        "values": values,
        "train_tokens": len(text),
        "vocabulary": len(corpus.vocabulary),
        "text_sha256": text_digest(corpus),
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
    }
    if model is not None:
        with _trained(run, prepared, folder) as cost:
            row |= {"parameters": count_parameters(model), **cost}
            log_q = judge.log_probs(model)
        _save(folder, log_q)
    elif run.arm in PEERS:
        order = int(run.arm.rpartition("-")[2])
        n_gram = KneserNey(order).fit(text, len(corpus.vocabulary))
        log_q = judge.restricted_log_probs(n_gram)
    else:
        log_q = _ensemble(run, seeds, folder)
        row["seeds"] = seeds
    found = judge.scores_of(log_q)
    row |= {
        "mu": found["mu"],
        **{split: found[split]["alone"] for split in SPLITS},
        **{f"mixed_{split}": found[split]["mixed"] for split in SPLITS},
        "kinds": by_kind_of_token(judge, text, log_q, found["mu"]),
    }
    if config.study == "counted":
        row["counted"] = _counted(judge, log_q)
    return {**row, "finished": time.strftime("%Y-%m-%d")}


def _counted(judge: MixtureJudge, log_q: LogProbs) -> dict[str, Any]:
    """Returns scores of mixtures with n-grams of all of the training text."""
    corpus = judge.corpus
    found = {}
    for order in (2, 5):
        n_gram = KneserNey(order).fit(corpus.train, len(corpus.vocabulary))
        log_p = judge.restricted_log_probs(n_gram)
        found[f"kneser-ney-{order}"] = judge.scores_of(log_q, log_p)
    return found


@contextlib.contextmanager
def _trained(
    run: ScarceRun, prepared: Prepared, folder: pathlib.Path
) -> Iterator[dict[str, Any]]:
    """Trains a model, which has its best weights inside; yields what it took."""
    corpus, text, values, batches, model = prepared
    assert batches is not None and model is not None
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    data = ResumableBatches(batches)
    if run.arm in PUBLISHED:
        rates = keras.callbacks.LearningRateScheduler(
            lambda epoch, _: zaremba_rate(run.arm, epoch)
        )
        epochs = zaremba_settings(run.arm)["epochs"]
        run_files.fit_resumably(model, data, folder, epochs, [log], _SECONDS, [rates])
        yield _cost(log, model, folder)
        return
    noise = noise_of(run.arm, values, text, len(corpus.vocabulary), run.seed)
    data = ResumableBatches(batches, transform=noise)
    config = run.config
    valid = contiguous_batches(
        corpus.valid, config.batch_size, config.window, prefix=corpus.vocabulary.eos_id
    ).dataset()
    averages = TwoTailedAveraging(valid, monitor="nll")
    guard = DivergenceGuard(recover=True, factor=0.9, also=[averages])
    kept = [averages, log, guard]
    run_files.fit_resumably(model, data, folder, config.epochs, kept, _SECONDS)
    with averages.best(model):
        yield _cost(log, model, folder)


def _cost(log: MetricsLog, model: keras.Model, folder: pathlib.Path) -> dict[str, Any]:
    with naming(folder / "model.keras"):
        model.save(folder / "model.keras")
    rows = read_metrics_log(log.path)
    return {
        "epochs": len(rows),
        "seconds": rows[-1].get("seconds"),
        "curve": [row.get("averaged_loss", row.get("nll")) for row in rows],
    }


# === What models say of each token, for their means ===


def _file(folder: pathlib.Path) -> pathlib.Path:
    return folder / "log_probs.npz"


def _save(folder: pathlib.Path, log_probs: LogProbs) -> None:
    with naming(_file(folder)):
        np.savez_compressed(
            _file(folder), valid=log_probs["valid"], test=log_probs["test"]
        )


def _ensemble(run: ScarceRun, seeds: list[int], folder: pathlib.Path) -> LogProbs:
    """Returns the logarithm of the mean probability of the seeds of an arm."""
    arm = run.arm.removeprefix(ENSEMBLE)
    parts = []
    for seed in seeds:
        own = folder.parent / run._replace(arm=arm, seed=seed).name
        if not _file(own).exists():
            raise FileNotFoundError(
                f"{_file(own)} is not there: the mean of --seeds="
                f"{','.join(map(str, seeds))} of {arm} needs their runs in the same "
                "--output_dir."
            )
        with np.load(_file(own)) as found:
            parts.append({split: found[split] for split in SPLITS})
    return {
        split: np.logaddexp.reduce([part[split].astype(np.float64) for part in parts])
        - math.log(len(parts))
        for split in SPLITS
    }

"""Trains the models of a plan: one, or several of other seeds whose mean is served."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras

from rlm_tf.averaging import WeightAveraging
from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.model_folder import MODEL
from rlm_tf.commands.training import fitting
from rlm_tf.commands.training.pairs import outcome, to_keep
from rlm_tf.commands.training.plan import Plan
from rlm_tf.data import Corpus
from rlm_tf.file_errors import naming
from rlm_tf.loading import load_model
from rlm_tf.models import EnsembleLanguageModel
from rlm_tf.restricted import KneserNey
from rlm_tf.training import free_graphs_on_exit

# Of several models each has a folder in this one.
MODELS = "models"
# Of one that is done: what is said of its training.
_TRAINED = "trained.json"
_SAID = ("seed", "epochs", "seconds", "ended", "evaluations")


class Trained(NamedTuple):
    """What training has brought.

    Attributes:
        kept: What files and exports hold.
        first: The first of several models, or the only one.
        earlier: Seconds of training before this process.
        models: What is said of each model: its seed, epochs, seconds, why it ended,
            and the evaluations of its averages.
    """

    kept: keras.Model
    first: keras.Model
    earlier: float
    models: list[dict[str, Any]]

    @property
    def curves(self) -> list[list[dict[str, Any]]]:
        """The evaluations of each model."""
        return [each["evaluations"] for each in self.models]

    def summary(self) -> dict[str, Any]:
        """Returns what results say of training."""
        last, several = self.models[-1], len(self.models)
        found = {
            "epochs": last["epochs"],
            "seconds": sum(each["seconds"] for each in self.models),
            "ended": last["ended"],
        }
        if several > 1:
            mean = sum(each["epochs"] for each in self.models) / several
            found["epochs"] = round(mean, 1)
            found["models"] = [
                {name: each[name] for name in _SAID if name != "evaluations"}
                for each in self.models
            ]
        return found


def train(
    plan: Plan,
    corpus: Corpus,
    counted: KneserNey | None,
    folder: pathlib.Path,
    *,
    strategy: str,
    resume: bool,
) -> Trained:
    """Trains what a plan asks for; a killed run goes on where it stood.

    Args:
        plan: The plan; of several models, each is trained for its seconds or epochs.
        corpus: The corpus.
        counted: The n-gram model of more text, which is matched.
        folder: Of the run; each of several models has a folder in it.
        strategy: Of tf.distribute.
        resume: Whether what the folder has is gone on with.
    """
    if plan.ensemble == 1:
        fitted = _fit(plan, corpus, counted, folder, strategy, resume)
        if plan.bmi:
            print(outcome(plan, corpus, fitted.curve), flush=True)
        kept = to_keep(fitted.model)
        return Trained(kept, kept, fitted.earlier, [_said(plan, fitted)])
    models, earlier = [], 0.0
    for number, member, place in _members(plan, folder):
        print(f"model {number} of {plan.ensemble}, seed {member.seed}", flush=True)
        if resume and (place / _TRAINED).exists():
            done = read_json(place / _TRAINED, "remove its folder", _SAID)
            print(f"trained before: {number_of('epoch', done['epochs'])}", flush=True)
            models.append(done)
            earlier += done["seconds"]
            continue
        place.mkdir(parents=True, exist_ok=True)
        # What one of them was traced for is of no use to the next.
        with free_graphs_on_exit():
            fitted = _fit(member, corpus, counted, place, strategy, resume)
            with naming(place / MODEL):
                to_keep(fitted.model).save(place / MODEL)
            models.append(_said(member, fitted))
            earlier += fitted.earlier
            del fitted
        write_json(place / _TRAINED, models[-1])
    parts = [
        load_model(place / MODEL, compile=False) for *_, place in _members(plan, folder)
    ]
    return Trained(EnsembleLanguageModel(parts), parts[0], earlier, models)


def _members(
    plan: Plan, folder: pathlib.Path
) -> Iterator[tuple[int, Plan, pathlib.Path]]:
    for index in range(plan.ensemble):
        member = dataclasses.replace(plan, seed=plan.seed + index)
        yield index + 1, member, folder / MODELS / str(index + 1)


def _fit(
    plan: Plan,
    corpus: Corpus,
    counted: KneserNey | None,
    folder: pathlib.Path,
    strategy: str,
    resume: bool,
) -> fitting.Fitted:
    """Returns a model with its best weights."""
    fitted = fitting.fit(
        plan, corpus, counted, folder, strategy=strategy, resume=resume
    )
    after = number_of("epoch", fitted.epochs)
    print(f"training ended after {after}: {fitted.why}", flush=True)
    _put_best(fitted.averages, fitted.model)
    return fitted


def _put_best(averages: WeightAveraging, model: keras.Model) -> None:
    """Puts the best weights into a model for good."""
    with averages.best(model):
        weights = model.get_weights()
    model.set_weights(weights)


def _said(plan: Plan, fitted: fitting.Fitted) -> dict[str, Any]:
    values = (
        plan.seed,
        fitted.epochs,
        fitted.seconds,
        fitted.why,
        fitted.averages.evaluations,
    )
    return dict(zip(_SAID, values, strict=True))

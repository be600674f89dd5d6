"""Writes the files that later versions must be able to load.

    RLM_JIT_LOOP=0 python -m tests.compatibility.make_files

Run it only for a new class, or when a format is changed on purpose: it writes the files
that are missing and leaves the others alone, which are the work of the version that
made them. A format that is given up on purpose is a case whose files are deleted first;
say so in the commit. Files of models come with what they computed, and with the weights
after further steps, both of a model loaded from the file just written, whose seed
generators are as new as those of anybody who loads it.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("RLM_JIT_LOOP", "0")

import pathlib
import re
import shutil
import tempfile
import zipfile
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.command_line.json_files import write_json
from rlm_tf.data import Vocabulary
from rlm_tf.restricted import KneserNey, write_arpa
from tests.compatibility import (
    arrays,
    cases,
    inputs,
    names,
    old_run,
    stopped_run,
    uses,
)
from tests.compatibility.cases import Case
from tests.compatibility.shelf import Shelf


def trained(model: keras.Model, batch: Any, steps: int) -> dict[str, float]:
    """Takes steps on one batch; returns the logs of the last."""
    data = tf.data.Dataset.from_tensors(batch)
    for _ in range(steps):
        logs = model.fit(data, verbose=0, shuffle=False).history
    return {name: values[-1] for name, values in logs.items()}


def outputs_of(model: keras.Model, example: Any) -> dict[str, np.ndarray]:
    """Returns what calling a model on arrays gives."""
    given = model(tf.nest.map_structure(tf.constant, example))
    return arrays.flat("outputs", given)


def weights_of(name: str, variables: list[Any]) -> dict[str, np.ndarray]:
    """Returns the variables' values in order."""
    return arrays.flat(name, [np.asarray(v.value) for v in variables])


def _path(weight: keras.Variable) -> str:
    """Returns a weight's path without numbers: Keras counts layers of a process."""
    return re.sub(r"_\d+", "", weight.path)


def results_of(model: keras.Model, case: Case, example: Any, batch: Any) -> dict:
    """Uses and trains a loaded model; returns all that is compared."""
    found = outputs_of(model, example)
    found["paths"] = np.array([_path(weight) for weight in model.weights])
    if case.contexts is not None:
        model.contexts = case.contexts()
    if case.complete is not None:
        case.complete(model)
    logs = trained(model, batch, case.steps)
    # How the counts of contexts are logged may change.
    found |= {f"logs/{k}": np.array(v) for k, v in logs.items() if "imm_co" not in k}
    found |= weights_of("next", model.weights)
    found |= weights_of("optimizer", model.optimizer.variables)
    if case.evaluates:
        data = tf.data.Dataset.from_tensors(batch)
        logs = model.evaluate(data, verbose=0, return_dict=True)
        found |= {f"evaluate/{name}": np.array(value) for name, value in logs.items()}
    return found


def _make(case: Case) -> None:
    path = arrays.FILES / f"{case.name}.keras"
    model = case.make()
    model.compile(case.optimizer())
    trained(model, case.batch, 2)
    model.save(path)
    _compress(path)
    loaded = keras.saving.load_model(path)
    found = results_of(loaded, case, case.example, case.batch)
    given = arrays.flat("example", case.example) | arrays.flat("batch", case.batch)
    arrays.write(case.name, given | found)


def _make_parts() -> None:
    """Writes the parts that are in no file yet to one more file."""
    files = sorted(arrays.FILES.glob("parts_*.keras"))
    kept = {name for file in files for name in keras.saving.load_model(file).names}
    made = {name: p for name, p in uses.parts().items() if name not in kept}
    if not made:
        return
    file_name = f"parts_{len(files)}"
    for name, part in made.items():
        uses.USES[name](part)
    path = arrays.FILES / f"{file_name}.keras"
    Shelf(made).save(path)
    _compress(path)
    loaded = keras.saving.load_model(path)
    found: dict[str, np.ndarray] = {}
    for name in made:
        found |= arrays.flat(name, uses.USES[name](getattr(loaded, name)))
    arrays.write(file_name, found)


def _make_tables() -> None:
    """Writes the formats that are not Keras': tables of n-grams and vocabularies."""
    model = cases.kneser_ney(3, smoothing="absolute", floor=0.01)
    model.save(arrays.FILES / "kneser_ney.npz")
    bigram = cases.kneser_ney(2)
    write_arpa(bigram, cases.WORDS, arrays.FILES / "bigram.arpa")
    found = {
        "kneser_ney": KneserNey.load(arrays.FILES / "kneser_ney.npz").log_probs(
            inputs.CONTEXTS
        ),
        "bigram": bigram.log_probs(inputs.CONTEXTS[:, :1]),
    }
    arrays.write("tables", {name: np.array(value) for name, value in found.items()})
    for rule, tokens in cases.TOKENS.items():
        Vocabulary(tokens, rule).save(arrays.FILES / f"vocabulary_{rule}.txt")


def _make_stopped_run() -> None:
    shutil.rmtree(stopped_run.FOLDER, ignore_errors=True)
    stopped_run.run(stopped_run.FOLDER, stop=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(stopped_run.FOLDER, pathlib.Path(folder) / "copy")
        arrays.write(stopped_run.FOLDER.name, stopped_run.run(copy))


def _make_old_run() -> None:
    old_run.make()
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(old_run.FOLDER, pathlib.Path(folder) / "copy")
        row, log_probs = old_run.resume(copy), old_run.exported_log_probs(copy)
        write_json(old_run.END, {"row": row, "log_probs": log_probs})


def _compress(path: pathlib.Path) -> None:
    """Writes a `.keras` file anew with smaller members; their contents stay."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def main() -> None:
    arrays.FILES.mkdir(exist_ok=True)
    tf.config.run_functions_eagerly(True)
    if not (arrays.FILES / "tables.npz").exists():
        _make_tables()
    _make_parts()
    if not stopped_run.FOLDER.with_suffix(".npz").exists():
        _make_stopped_run()
    if not old_run.END.exists():
        _make_old_run()
    names.freeze()
    for case in cases.CASES:
        if not (arrays.FILES / f"{case.name}.npz").exists():
            print(case.name)
            _make(case)


if __name__ == "__main__":
    main()

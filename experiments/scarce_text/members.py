"""What models say of each token, kept: for their means, and for other studies."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np

from experiments.kit import run_flags
from experiments.kit.mixture_judge import SPLITS, LogProbs
from experiments.kit.run_files import LOG_PROBS
from experiments.scarce_text.arms import PEERS
from experiments.scarce_text.choosing import ScarceRun
from experiments.scarce_text.config import trials_of
from experiments.scarce_text.report import NEEDS
from rlm_tf.file_errors import naming

# Studies of which one's trainings may be another's.
_SHARING = ("arms", "counted", "curve")
# What a training took, in its row.
_COST = ("parameters", "epochs", "seconds", "curve")


def save(folder: pathlib.Path, log_probs: LogProbs) -> None:
    """Keeps what a model gives each token, in the folder of its run."""
    path = folder / LOG_PROBS
    with naming(path):
        np.savez_compressed(path, valid=log_probs["valid"], test=log_probs["test"])


def kept(folder: pathlib.Path) -> LogProbs:
    """Returns what `save` has kept, as float64."""
    with np.load(folder / LOG_PROBS) as found:
        return {split: found[split].astype(np.float64) for split in SPLITS}


def members_of(run: ScarceRun, output: pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders of the runs that an ensemble is the mean of.

    Raises:
        FileNotFoundError: If one was not made, or not in this folder.
    """
    _, rows = run_flags.folders()
    found = []
    for seed in run.seeds:
        name = run._replace(arm=run.member, seeds=(seed,)).name
        if name not in rows or not (output / name / LOG_PROBS).exists():
            raise FileNotFoundError(
                f"{output / name} is no finished run: the mean of --seeds="
                f"{','.join(map(str, run.seeds))} of {run.member} needs their runs in "
                "the same --output_dir; make them first (--noresume, if only their "
                "rows are there)."
            )
        found.append(output / name)
    return found


def twin_of(
    run: ScarceRun, output: pathlib.Path
) -> tuple[dict[str, Any], LogProbs] | None:
    """Returns what the same training took and says, if another study has made it.

    Or a trial of the arm, with what was chosen then; of a trial a run of the arm.

    Args:
        run: A run of one model.
        output: Folder of all runs.
    """
    if run.is_ensemble or run.arm in PEERS:
        return None
    _, rows = run_flags.folders()
    for study, trial in (
        *((study, 0) for study in _SHARING if study != run.config.study),
        *(
            ("trials", number)
            for number in range(1, trials_of(run.arm) + 1)
            if not run.trial
        ),
    ):
        config = dataclasses.replace(run.config, study=study)
        name = run._replace(config=config, trial=trial).name
        if name not in rows or not (output / name / LOG_PROBS).exists():
            continue
        row = rows.read(name, NEEDS)
        if _training(row["settings"]) == _training(run.settings):
            cost = {each: row[each] for each in _COST if each in row}
            return {**cost, "trained_as": name}, kept(output / name)
    return None


def _training(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings that training depends on, as a row has them."""
    own = {n: value for n, value in settings.items() if n not in ("study", "trials")}
    found: dict[str, Any] = json.loads(json.dumps(own))
    return found

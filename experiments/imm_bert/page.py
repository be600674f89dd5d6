"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.imm_bert.config import ARMS
from experiments.imm_bert.report import scored_rows
from experiments.imm_bert.report import tables as tables_of_rows
from experiments.kit.about import About, MadeBy
from experiments.kit.drawing import distinct
from experiments.kit.rows import Rows
from experiments.kit.task_tables import less_by_seeds, mean_scores

_COMMAND = "python -m experiments.imm_bert --preset={preset}"


def _command(preset: str, seeds: str) -> str:
    return f"{_COMMAND.format(preset=preset)} --seeds={seeds} --data_dir=DATA"


_SMALL = _command("small", "1,2,3")
ABOUT = About(
    "IMM, Table 3",
    "Does IMM with a bigram help a masked language model that is fine-tuned?",
    _SMALL,
    "5 h, 1 core beside two other processes",
)
# Masked words at weight 1.
_WHOLE = _command("small", "1,2").replace(
    "--seeds", "--arms=mlm,imm --tasks=sst2-tenth --restarts=1 --seeds"
)
_PUBLISHED = (
    _command("published", seed).replace(
        "--seeds", f"--arms={arms} --tasks={tasks} --seeds"
    )
    for arms, tasks, seed in (
        ("mlm,imm", "sst2-tenth", "3"),
        ("none,mlm", "cola,rte,mrpc", "1"),
        ("mlm", "ag-news-300", "1"),
        ("imm-k5", "cola,rte,mrpc,sst2-tenth,ag-news-300,ag-news-1000", "1"),
    )
)
_ALL = (_SMALL, _WHOLE, *_PUBLISHED)
_MADE_BY: MadeBy = {
    "tasks": _ALL,
    "matched": _ALL,
    "checkpoints": _COMMAND.format(preset="paper") + " --encoder=DIR --data_dir=DATA",
    "projected": _COMMAND.format(preset="paper"),
}
# Seeds of a claim, and arms of preset small.
_CLAIMED, _COMPARED = 3, ("none", "mlm-tenth", "imm-tenth")
# IMM, masked words alone, and where that is not a tenth of the weight.
_GAINS = (("imm-tenth", "mlm-tenth", ""), ("imm", "mlm", " at the paper's weight"))
# Of what there are rows of.
_NEEDS = ("name", "arm")


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(_NEEDS))


MADE_BY: MadeBy = {
    name: _MADE_BY[name] for name in tables(pathlib.Path(__file__).parent)
}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = scored_rows(Rows(folder).read_all(_NEEDS))
    if not rows:
        return "The comparison was not run yet"
    parts, gains = [], []
    for task in distinct(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        # Of one seed nothing is claimed.
        if len({row["seed"] for row in own}) < _CLAIMED:
            continue
        arms = {arm: [row for row in own if row["arm"] == arm] for arm in ARMS}
        metric = next(iter(own[0]["test"]))
        gains += [
            f"{task}{where} {less_by_seeds(alone, arms, arm, metric)}"
            for arm, alone, where in _GAINS
            if arms[arm] and arms[alone]
        ]
        kept = [row for row in own if row["arm"] in _COMPARED]
        found = ", ".join(
            f"{name} {score:.1f}" for name, score in mean_scores(kept).items()
        )
        parts.append(f"{task} {found}")
    return (
        "Points by IMM on top of masked words, ± 2 standard errors: "
        f"{', '.join(gains)}; 100 times the score: {'; '.join(parts)}"
    )

"""Settings that studies of seed words share, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from experiments.kit.seed_list import SET_NAMES
from rlm_tf.command_line.flags import setting

# What is trained: how labels are selected, what the probe and the final training
# delete, and who labels ("published": the authors' rule; "words": ours; "truth": the
# published labels that are right).
ARMS: Mapping[str, dict[str, Any]] = {
    "vanilla": {"select": "all"},
    "standard": {"select": "confident"},
    "o2u": {"select": "loss"},
    "lops": {"select": "learning_order"},
    "seed-deletion": {"select": "confident", "probe": "seeds"},
    "random-deletion": {"select": "confident", "probe": "random"},
    "oracle": {"select": "all", "labels": "truth"},
    # Ours: no selection, words deleted as the classifier itself learns.
    "words": {"select": "all", "labels": "words"},
    "ours-seeds": {"select": "all", "labels": "words", "final": "seeds"},
    "ours-random": {"select": "all", "labels": "words", "final": "random"},
    "ours-selected": {
        "select": "confident",
        "labels": "words",
        "probe": "random",
        "final": "random",
    },
}


class Training(NamedTuple):
    """How classifiers of an arm are trained.

    Attributes:
        epochs: Of labels.
        rate: Of Adam.
        dropout: Of the vector of a document.
        decay: Of weights.
    """

    epochs: int
    rate: float
    dropout: float
    decay: float


# What `tune` of `seed_classifiers` tries, of each arm alike, and what was the best.
EPOCHS, RATES, DECAYS = (2, 4, 8), (0.003, 0.01), (0.0, 0.3)
_FIRST = Training(4, 0.01, 0.0, 0.0)
CHOSEN: Mapping[str, Training] = {}
# Likewise C of peers' logistic regression, which `tune-peers` tries.
_FIRST_STRENGTH = 10.0
CHOSEN_STRENGTHS: Mapping[str, float] = {}
# On whose documents that was chosen.
TUNED_ON = "20news-coarse"
ENCODERS = ("linear", "averaged", "convolutional", "recurrent")


def strength_of(peer: str) -> float:
    """Returns C of a peer's logistic regression."""
    return CHOSEN_STRENGTHS.get(peer, _FIRST_STRENGTH)


def shown(name: str) -> str:
    """Returns a set's name in tables: the one that all was chosen on is marked."""
    return f"{name} (tuned on)" if name == TUNED_ON else name


@dataclasses.dataclass(frozen=True)
class SeedStudyConfig:
    """A list of runs: sets of documents, and seeds with a split each."""

    sets: tuple[str, ...] = setting(
        ("20news-coarse", "20news-fine", "ag-news", "rotten-tomatoes"),
        f"Some of {', '.join(SET_NAMES)}.",
    )
    encoder: str = setting("averaged", f"One of {', '.join(ENCODERS)}.")
    length: int = setting(200, "Words of a document that are read.")
    max_size: int = setting(30_000, "Words that the classifier knows.")
    epochs: int = setting(8, "Of each training.")
    rate: float = setting(0.01, "Of Adam.")
    batch_size: int = setting(64, "Documents of a step.")
    fraction: float = setting(0.5, "Share of the labels that is selected.")
    iterations: int = setting(5, "Of self-training.")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        if not self.sets or not set(self.sets) <= set(SET_NAMES):
            raise ValueError(
                f"--sets must be some of {', '.join(SET_NAMES)}; found "
                f"{', '.join(self.sets) or 'none'}."
            )
        if self.encoder not in ENCODERS:
            raise ValueError(
                f"--encoder must be one of {', '.join(ENCODERS)}; found {self.encoder}."
            )
        for name in ("length", "max_size", "epochs", "rate", "batch_size"):
            value = getattr(self, name)
            # None: what was chosen.
            if value is not None and not value > 0:
                raise ValueError(f"--{name} must be positive, found {value}.")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"--fraction must lie in (0, 1], found {self.fraction}.")
        if self.iterations < 0:
            raise ValueError(
                f"--iterations must not be negative, found {self.iterations}."
            )


@dataclasses.dataclass(frozen=True)
class TunedStudyConfig(SeedStudyConfig):
    """The same of studies whose arms have what was chosen for each."""

    length: int = setting(100, "Words of a document that are read.")
    epochs: int | None = setting(None, "Of labels; none: what was chosen.")  # type: ignore[assignment]
    rate: float | None = setting(None, "Of Adam; likewise.")  # type: ignore[assignment]
    dropout: float | None = setting(None, "Of a document's vector; likewise.")
    decay: float | None = setting(None, "Of weights; likewise.")
    self_epochs: int = setting(4, "Of each iteration of self-training.")
    least_steps: int = setting(
        200, "Of each training: few labels, or half of them, are read more often."
    )

    def training(self, arm: str) -> Training:
        """Returns how classifiers of an arm are trained."""
        chosen = CHOSEN.get(arm, _FIRST)
        given = {name: getattr(self, name) for name in Training._fields}
        return chosen._replace(**{k: v for k, v in given.items() if v is not None})

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        super().check()
        for name, least in (("epochs", 1), ("rate", 1e-12), ("decay", 0.0)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"--{name} must be at least {least:g}, found {value}.")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError(f"--dropout must lie in [0, 1), found {self.dropout}.")
        for name, least in (("self_epochs", 1), ("least_steps", 0)):
            if getattr(self, name) < least:
                raise ValueError(
                    f"--{name} must be at least {least}, found {getattr(self, name)}."
                )

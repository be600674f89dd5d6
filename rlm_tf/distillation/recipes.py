"""Published weights of strategies, for networks with layers `stage1` and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import keras
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_option
from rlm_tf.distillation.contrast import ContrastiveRepresentation
from rlm_tf.distillation.outputs import DIST, KD, DecoupledKD
from rlm_tf.distillation.projections import (
    ActivationBoundary,
    CorrelationCongruence,
    FitNet,
    VariationalInformation,
)
from rlm_tf.distillation.relations import (
    AttentionTransfer,
    NeuronSelectivity,
    ProbabilisticTransfer,
    RelationalKD,
    SimilarityPreserving,
)
from rlm_tf.distillation.strategy import Strategy
from rlm_tf.distillation.taught import FactorTransfer, SelfSupervised

# A number, or a schedule of the optimiser's step.
Weight: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule
Losses = list[tuple[Strategy, Weight]]
ARMS = ("standard", "soteacher")


class Recipe(NamedTuple):
    """What a student is trained with.

    Attributes:
        losses: Strategies and their coefficients.
        student_weight: Of the cross-entropy of labels.
        first_losses: What it is trained with alone, without labels, before that; empty
            but for AB.
        first_epochs: For how many epochs.
    """

    losses: Losses
    student_weight: float = 1.0
    first_losses: Sequence[tuple[Strategy, float]] = ()
    first_epochs: int = 0


class _Method(NamedTuple):
    """A row of Table B.1.

    Attributes:
        make: Makes the strategy of layers of teacher and student.
        places: Layers, beside `{last}` the last stage and `{stages}` all of them.
        coefficients: With a standard teacher, and with a student-oriented one.
    """

    make: Callable[[str, str], Strategy]
    places: str
    coefficients: tuple[float, float]


_METHODS: Mapping[str, _Method] = {
    "fitnet": _Method(FitNet, "stage2", (100.0, 50.0)),
    "at": _Method(AttentionTransfer, "{stages}", (1000.0, 500.0)),
    "sp": _Method(SimilarityPreserving, "{last}", (3000.0, 1500.0)),
    "cc": _Method(CorrelationCongruence, "pooled", (0.02, 0.01)),
    "vid": _Method(VariationalInformation, "{stages}", (1.0, 0.5)),
    "rkd": _Method(RelationalKD, "pooled", (1.0, 0.5)),
    "pkt": _Method(ProbabilisticTransfer, "pooled", (30_000.0, 15_000.0)),
    "ft": _Method(FactorTransfer, "{last}", (200.0, 100.0)),
    "nst": _Method(NeuronSelectivity, "{stages}", (50.0, 25.0)),
}
_CRD = (0.8, 0.5)
# Of the KD of rotated images, beside 10 of similarities.
_ROTATED = (0.27, 0.1)
_AB_SCALE, _AB_EPOCHS = 3 / 1000, 30
_DIST_TEMPERATURES = {"dist": 4.0, "dist_unscaled": 1.0}
RECIPES = ("kd", *_METHODS, "ab", "crd", "sskd", "dkd", *_DIST_TEMPERATURES)


def recipe(
    name: str,
    arm: str = "standard",
    *,
    stages: int = 3,
    labels: npt.ArrayLike | None = None,
    negatives: int = 16_384,
    warm_up: int = 0,
    seed: int = 0,
) -> Recipe:
    """Returns the strategies and weights of Table B.1 of Dong (2025), and of others.

    `kd` has half the labels and half KD at T = 4; the others labels, KD at T = 4, and
    themselves, at weights that student-oriented teachers have halved (CRD: 0.8 to 0.5;
    SSKD: of the KD of rotated images 2.7 to 1). Of AB there are 30 epochs without
    labels first. `dkd` and `dist`, which the thesis does not have, have beside the
    labels the weights that their own papers' code has for CIFAR-100 and WRN-40-2 to
    WRN-40-1, whatever the teacher; `dist_unscaled` is DIST at T = 1, its paper's choice
    for ImageNet, where few classes would make 16 times its losses outweigh all labels.

    Args:
        name: kd, fitnet, at, sp, cc, vid, rkd, pkt, ab, ft, nst, crd, sskd, dkd, dist
            or dist_unscaled.
        arm: Of the teacher: "standard" or "soteacher".
        stages: Of both networks, whose layers are `stage1` and so on, `stage1_pre` and
            so on before their activations, and `pooled`.
        labels: Of all training examples; crd needs them.
        negatives: Of crd, an example.
        warm_up: Steps in which dkd's weight rises to 1; its authors have those of 20 of
            240 epochs.
        seed: Of crd.

    Raises:
        ValueError: If the name or the arm is unknown, or labels are missing.
    """
    check_option("recipe", "name", name, RECIPES)
    check_option("recipe", "arm", arm, ARMS)
    check_integer("recipe", "stages", stages, 1)
    check_integer("recipe", "warm_up", warm_up, 0)
    side = ARMS.index(arm)
    if name == "kd":
        return Recipe([(KD(4.0), 0.5)], 0.5)
    if name == "dkd":
        weight: Weight = 1.0
        if warm_up:
            weight = keras.optimizers.schedules.PolynomialDecay(0.0, warm_up, 1.0)
        return Recipe([(DecoupledKD(1.0, 6.0, 4.0), weight)])
    if name in _DIST_TEMPERATURES:
        return Recipe([(DIST(2.0, 2.0, _DIST_TEMPERATURES[name]), 1.0)])
    also: Losses = [(KD(4.0), 1.0)]
    if name == "ab":
        places = [f"stage{stage}_pre" for stage in range(1, stages + 1)]
        first = [
            (ActivationBoundary(place, place), _AB_SCALE * 2.0 ** (index - stages + 1))
            for index, place in enumerate(places)
        ]
        return Recipe(also, 1.0, first, _AB_EPOCHS)
    if name == "crd":
        return Recipe([*also, (_contrast(labels, negatives, seed), _CRD[side])])
    if name == "sskd":
        rotated = SelfSupervised("pooled", "pooled", rotated_weight=_ROTATED[side])
        return Recipe([*also, (rotated, 10.0)])
    method = _METHODS[name]
    known: dict[str, Any] = {
        "{stages}": [f"stage{stage}" for stage in range(1, stages + 1)],
        "{last}": [f"stage{stages}"],
    }
    losses = [
        (method.make(place, place), method.coefficients[side])
        for place in known.get(method.places, [method.places])
    ]
    return Recipe([*also, *losses])


def _contrast(
    labels: npt.ArrayLike | None, negatives: int, seed: int
) -> ContrastiveRepresentation:
    if labels is None:
        raise ValueError(
            "recipe: crd contrasts examples with those of other classes; give `labels` "
            "of all training examples."
        )
    number = len(labels)  # type: ignore[arg-type]
    return ContrastiveRepresentation(
        "pooled",
        "pooled",
        num_examples=number,
        labels=labels,
        negatives=negatives,
        seed=seed,
    )

"""What `rlm_tf train` chooses, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.settings import TrainSettings
from rlm_tf.commands.training import architectures

# Fewer passes have no time for that much: the next rates of the list, or those after.
_FEW_EPOCHS = (12, 6)
_SMALL = 1_000_000
# Passes over the text that a model of the chosen width should see.
_LEAST_EPOCHS = {True: 20, False: 4}
# Most of the time that is for training, and least of what is left when it begins.
_TRAINING_SHARE = 0.85
_LEAST_SHARE = 0.5
# What start, export and report take on two cores, with any text; what measuring a
# held-out token costs at both temperatures and in the search for one, trainings on a
# token.
_EXPORT_SECONDS = 60.0
_MEASURING = 1.5
_LEAST_SECONDS = 5.0
# An evaluation of averages at least so often in all, and at most every so many steps.
_EVALUATIONS = 25
_LEAST_STEPS = 100
# Steps without gain after which the learning rate is halved.
_PATIENCE_STEPS = 500
_PATIENCE = 4


@dataclasses.dataclass(frozen=True)
class Plan:
    """A training run.

    Attributes:
        rule: Tokenisation rule.
        vocabulary_size: V.
        width: Of embedding and layers.
        num_layers: Of layers or blocks.
        dropouts: Rates; of an LSTM on inputs, between layers, on states, on outputs, of
            a transformer on inputs and in blocks, on outputs.
        batch_size: Rows.
        window: Time steps.
        learning_rate: Of Adam.
        clip_norm: Of the gradient summed over a window.
        order: Of the n-gram model.
        mixture: Whether the n-gram is mixed in.
        imm: Whether an induced model is matched.
        coefficient: lambda.
        restricted_order: Of the n-gram model that is matched.
        every_steps: Steps between evaluations; None: an epoch.
        patience: Epochs without gain before the rate is halved.
        seconds: Of training; None: `epochs` count.
        epochs: Most passes.
        seed: Of the run.
        reasons: Why, by attribute.
        architecture: lstm or transformer.
        ensemble: How many models are trained, each for `seconds` or `epochs`, with the
            seed and those after it.
        bmi: Whether there is BMI.
        bmi_weight: Its weight.
        bmi_raml_weight: Of the second phase; None: the same.
        bmi_phase_two: Its second phase, or None.
        bmi_switch: The epoch after which that begins, or None.
        bmi_half_life: Epochs after each of which the weight is halved, or None.
        bmi_pooling: What the discriminator sees of a piece of text.
        l2: Penalty on squared weights, beside losses summed over a window.
        weight_decay: Of AdamW; 0: Adam.
        noising: gamma0 of bigram noising; 0: none.
    """

    rule: str
    vocabulary_size: int
    width: int
    num_layers: int
    dropouts: tuple[float, ...]
    batch_size: int
    window: int
    learning_rate: float
    clip_norm: float
    order: int
    mixture: bool
    imm: bool
    coefficient: float
    restricted_order: int
    every_steps: int | None
    patience: int
    seconds: float | None
    epochs: int
    seed: int
    reasons: dict[str, str]
    architecture: str = "lstm"
    ensemble: int = 1
    bmi: bool = False
    bmi_weight: float = 0.1
    bmi_raml_weight: float | None = None
    bmi_phase_two: str | None = None
    bmi_switch: int | None = None
    bmi_half_life: int | None = None
    bmi_pooling: str = "max"
    l2: float = 0.0
    weight_decay: float = 0.0
    noising: float = 0.0

    def lines(self) -> Iterator[str]:
        """Gives a line for each choice and its reason."""
        rates = ", ".join(f"{rate:g}" for rate in self.dropouts)
        imm = "off"
        if self.imm:
            imm = f"lambda {self.coefficient:g}, order {self.restricted_order}"
        network = architectures.OF[self.architecture].shown
        shown = {
            "width": f"{self.num_layers} x {self.width} {network}",
            "dropouts": rates,
            "batch_size": f"{self.batch_size} rows of {self.window}",
            "learning_rate": f"{self.learning_rate:g}",
            "mixture": f"with Kneser-Ney of order {self.order}"
            if self.mixture
            else "off",
            "imm": imm,
        }
        for name in ("l2", "weight_decay", "noising"):
            if getattr(self, name):
                shown[name] = f"{getattr(self, name):g}"
        if self.ensemble > 1:
            last = self.seed + self.ensemble - 1
            shown["ensemble"] = (
                f"{self.ensemble} models, of seeds {self.seed} to {last}"
            )
        if self.bmi:
            phase = "Phase I"
            if self.bmi_phase_two is not None:
                phase += f", {self.bmi_phase_two} after epoch {self.bmi_switch}"
                if self.bmi_raml_weight is not None:
                    phase += f" of weight {self.bmi_raml_weight:g}"
            weight = f"weight {self.bmi_weight:g}"
            if self.bmi_half_life is not None:
                weight += f", halved every {number_of('epoch', self.bmi_half_life)}"
            shown["bmi"] = f"{weight}, {self.bmi_pooling} of features, {phase}"
        for name, value in shown.items():
            yield f"{name.replace('_', ' ')}: {value} ({self.reasons[name]})"


class Amounts(NamedTuple):
    """How much there is.

    Attributes:
        train: Training tokens.
        counted: Tokens that are only counted.
    """

    train: int
    counted: int


def first_plan(
    settings: TrainSettings, rule: str, vocabulary_size: int, amounts: Amounts
) -> Plan:
    """Returns what the text alone decides; `fit_to_time` does the rest."""
    reasons: dict[str, str] = {}
    tokens = f"{amounts.train:,} training tokens"

    architecture = architectures.OF[settings.architecture]

    def chosen(name: str, value: Any, why: str) -> Any:
        given = getattr(settings, name)
        reasons[name] = why if given is None else f"--{name}"
        return value if given is None else given

    width = chosen("width", _up_to(architecture.widths, amounts.train), tokens)
    rates, why = _dropouts(architecture, amounts.train, settings.epochs)
    dropouts = chosen("dropouts", rates, why)
    batch_size = chosen("batch_size", 8 if amounts.train < 20_000 else 20, tokens)
    several = len(architecture.learning_rates) > 1
    learning_rate = chosen(
        "learning_rate",
        _up_to(architecture.learning_rates, amounts.train),
        tokens if several else settings.architecture,
    )
    # Weights are kept small once.
    penalty = 0.0 if settings.weight_decay else _up_to(architecture.l2s, amounts.train)
    l2 = chosen("l2", penalty, tokens)
    reasons["mixture"] = "worth more than most training methods, and served with it"
    if not settings.mixture:
        reasons["mixture"] = "--nomixture"
    with_mixture = "no gain beside a mixture" if settings.mixture else "no mixture"
    imm = chosen("imm", not settings.mixture, with_mixture)
    for name in ("bmi", "weight_decay", "noising"):
        reasons[name] = f"--{name}"
    reasons["ensemble"] = "--ensemble; each has an equal part of the time"
    if settings.epochs is not None:
        reasons["ensemble"] = "--ensemble; each for all epochs"
    matched = settings.order if amounts.counted else 2
    coefficient = settings.coefficient
    if coefficient is None:
        coefficient = 0.5 if amounts.counted else 0.2
    window = settings.window or architecture.window
    steps = steps_of(amounts.train, batch_size, window)
    return Plan(
        rule=rule,
        vocabulary_size=vocabulary_size,
        width=width,
        num_layers=settings.num_layers or architecture.num_layers,
        dropouts=tuple(dropouts),
        batch_size=batch_size,
        window=window,
        learning_rate=learning_rate,
        clip_norm=settings.clip_norm,
        order=settings.order,
        mixture=settings.mixture,
        imm=bool(imm),
        coefficient=coefficient,
        restricted_order=matched,
        every_steps=None,
        patience=max(_PATIENCE, -(-_PATIENCE_STEPS // steps)),
        seconds=None,
        epochs=settings.epochs or 10**6,
        seed=settings.seed,
        reasons=reasons,
        architecture=settings.architecture,
        ensemble=settings.ensemble,
        bmi=settings.bmi,
        bmi_weight=settings.bmi_weight,
        bmi_raml_weight=settings.bmi_raml_weight,
        bmi_phase_two=settings.bmi_phase_two,
        bmi_switch=settings.bmi_switch,
        bmi_half_life=settings.bmi_half_life,
        bmi_pooling=settings.bmi_pooling,
        l2=l2,
        weight_decay=settings.weight_decay,
        noising=settings.noising,
    )


def fit_to_time(
    plan: Plan,
    settings: TrainSettings,
    train_tokens: int,
    step_seconds: float,
    spent: float,
    *,
    held_out_tokens: int = 0,
    n_gram_seconds: float = 0.0,
) -> Plan:
    """Returns the plan of a run that is over in time.

    Args:
        plan: What the text decides.
        settings: With the minutes.
        train_tokens: In a pass.
        step_seconds: A training step of the planned width takes so long.
        spent: Seconds since the command was started.
        held_out_tokens: Of the validation and the test text, which are measured.
        n_gram_seconds: Counting all n-grams takes so long; those of parts of the text
            are counted for the report.
    """
    left = 60 * settings.minutes - spent

    def training_seconds(each: float) -> float:
        token = each / (plan.batch_size * plan.window)
        measuring = _MEASURING * held_out_tokens * token * plan.ensemble
        after = _EXPORT_SECONDS + measuring + n_gram_seconds
        until = min(60 * settings.minutes * _TRAINING_SHARE - spent, left - after)
        return max(until, left * _LEAST_SHARE, _LEAST_SECONDS) / plan.ensemble

    steps = steps_of(train_tokens, plan.batch_size, plan.window)
    least = _LEAST_EPOCHS[train_tokens < _SMALL]
    width, reasons = plan.width, dict(plan.reasons)
    each = step_seconds
    seconds = training_seconds(each)
    architecture = architectures.OF[plan.architecture]
    if settings.width is None:
        widths = architecture.narrower
        while seconds < least * steps * each and width > widths[-1]:
            width = next(narrower for narrower in widths if narrower < width)
            each = step_seconds * relative_cost(plan, width)
            seconds = training_seconds(each)
        if width != plan.width:
            reasons["width"] = (
                f"{plan.width} would see the text {seconds / steps / step_seconds:.1f} "
                f"times in {seconds / 60:.1f} min"
            )
    every = int(seconds / _EVALUATIONS / each)
    every_steps = None if every >= steps else max(every, min(_LEAST_STEPS, steps))
    dropouts = plan.dropouts
    if settings.dropouts is None:
        dropouts, reasons["dropouts"] = _dropouts(
            architecture, train_tokens, round(seconds / (steps * each), 1)
        )
    return dataclasses.replace(
        plan,
        width=width,
        dropouts=dropouts,
        seconds=seconds,
        every_steps=every_steps,
        reasons=reasons,
    )


def relative_cost(plan: Plan, width: int) -> float:
    """Returns what a step of another width costs, in steps of the planned one."""

    def cost(size: int) -> float:
        # Products of the layers and of the softmax; what a loop costs at any width.
        layers = plan.num_layers * architectures.OF[plan.architecture].layer_cost(size)
        return layers + size * plan.vocabulary_size + 200_000

    return cost(width) / cost(plan.width)


def steps_of(tokens: int, batch_size: int, window: int) -> int:
    """Returns the steps of a pass."""
    rows = -(-tokens // batch_size)
    return -(-rows // window)


def _dropouts(
    architecture: architectures.Architecture, tokens: int, epochs: float | None
) -> tuple[tuple[float, ...], str]:
    """Returns rates for an amount of text that is seen so often, and the reason."""
    all_rates = [rates for _, rates in architecture.dropouts]
    place = all_rates.index(_up_to(architecture.dropouts, tokens))
    why = f"{tokens:,} training tokens"
    few = sum(epochs is not None and epochs < few for few in _FEW_EPOCHS)
    if few:
        why += f", seen {epochs:g} times only"
    return all_rates[min(place + few, len(all_rates) - 1)], why


def _up_to(choices: tuple[tuple[int | None, Any], ...], tokens: int) -> Any:
    return next(choice for most, choice in choices if most is None or tokens < most)

"""What induced model matching adds to a training step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras

from experiments.benchmark.preset import Preset
from experiments.benchmark.stream import Stream, windows
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step, duration, elapsed, train_function_step
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    OwnContexts,
    RecurrentLanguageModel,
    SampledContexts,
)
from rlm_tf.models.imm.induced_model_matching import Contexts
from rlm_tf.restricted import KneserNey

_LAYERS, _LEARNING_RATE, _CLIP_NORM, _COEFFICIENT = 2, 1.0, 5.0, 0.2
_BATCHES, _MIN_COUNT, _BANK_STEPS = 16, 5, 10
_ONE_PASS = "in batch, one backward pass"
EVERY, OWN = "every context (min_count 1)", "each position alone (Eq. 16), order 5"
# What a step may cost, the plain step being 1, by width.
TARGETS: Mapping[str, Mapping[int, str]] = {
    _ONE_PASS: {200: "at most 1.25", 650: "at most 1.12"},
    EVERY: {200: "at most 1.25", 650: "at most 1.08"},
    OWN: {200: "at most 1.15", 650: "at most 1.06"},
}


def measure_in_batch(
    preset: Preset,
    load: Callable[[], Stream],
    width: int,
    rounds: int,
    seeds: tuple[int, ...],
) -> Row:
    """Times the step with in-batch contexts, in all settings, against the plain step.

    2 layers without dropout (which would only make the plain step dearer), bigram
    Kneser-Ney, every position with at least 5 predictions behind its induced model
    unless the setting says otherwise; and each position alone, with order 5.
    """
    timings, stream = Timings(), load()
    coverage = {}
    bank = _BANK_STEPS * preset.batch_size * preset.window
    for seed in seeds:
        settings = {
            _ONE_PASS: InBatchContexts(min_count=_MIN_COUNT),
            EVERY: InBatchContexts(min_count=1),
            f"with a bank of {bank:,}": InBatchContexts(
                min_count=_MIN_COUNT, bank_size=bank
            ),
            "separate clipping": InBatchContexts(
                min_count=_MIN_COUNT, separate_clipping=True
            ),
            "evaluation pass": InBatchContexts(
                min_count=_MIN_COUNT, pass_mode="evaluation"
            ),
            "separate clipping, evaluation pass": InBatchContexts(
                min_count=_MIN_COUNT, separate_clipping=True, pass_mode="evaluation"
            ),
        }
        models = {
            name: wrapped_model(preset, stream, width, seed, contexts)
            for name, contexts in settings.items()
        }
        models[OWN] = wrapped_model(preset, stream, width, seed, OwnContexts(), order=5)
        steps = {"plain": plain_step(preset, stream, width, seed)}
        for name, model in models.items():
            steps[name] = _step(preset, stream, model)
        # By then the bank is full.
        timings.run(steps, rounds, warm_up=_BANK_STEPS + 1)
        for name, model in models.items():
            coverage[name] = float(model.coverage_metric.result())
    lines = [
        Line(
            f"IMM step, {_LAYERS} x {width}, {name}",
            timings.text(name),
            f"plain step: {timings.text('plain')}",
            timings.ratio(name, "plain"),
            TARGETS.get(name, {}).get(width, ""),
        )
        for name in coverage
    ]
    return Row(
        lines,
        {"times": timings.numbers(), "corpus": stream.name, "coverage": coverage},
    )


def measure_sampled(
    preset: Preset,
    load: Callable[[], Stream],
    width: int,
    seeds: tuple[int, ...],
) -> Row:
    """Times the step with the published sampler, crosstalk gradient."""
    timings, stream = Timings(), load()
    projected: dict[int, float] = {}
    names = {k: f"paper's sampler, k = {k}" for k in preset.sampled_ks}
    for seed in seeds:
        steps = {"plain": plain_step(preset, stream, width, seed)}
        base = elapsed_after_warm_up(steps["plain"], 3)
        per_sample = 0.0
        for k, name in names.items():
            if k in projected or base + k * per_sample > preset.longest_step:
                projected[k] = base + k * per_sample
                continue
            contexts = SampledContexts(stream.tokens, k, preset.window, seed=seed)
            model = wrapped_model(
                preset, stream, width, seed, contexts, gradient="crosstalk"
            )
            steps[name] = _step(preset, stream, model)
            per_sample = (elapsed_after_warm_up(steps[name], 1) - base) / k
        timings.run(steps, preset.sampled_rounds, warm_up=0)
    lines = []
    for k, name in names.items():
        what = f"IMM step, {_LAYERS} x {width}, {name} (crosstalk gradient)"
        plain = f"plain step: {timings.text('plain')}"
        if k in projected:
            ratio = projected[k] / timings.median("plain")
            text = f"{duration(projected[k])} (projected, not run)"
            lines.append(Line(what, text, plain, f"{ratio:,.0f} (projected)"))
        else:
            ratio_text = timings.ratio(name, "plain")
            lines.append(Line(what, timings.text(name), plain, ratio_text))
    numbers: dict[str, Any] = {"times": timings.numbers(), "corpus": stream.name}
    if projected:
        numbers["projected_s"] = {str(k): value for k, value in projected.items()}
    return Row(lines, numbers)


def elapsed_after_warm_up(step: Step, warm_up: int) -> float:
    """Returns the seconds of one call after some that are not timed."""
    for _ in range(warm_up):
        step()
    return elapsed(step)


# === Models ===


def language_model(
    preset: Preset, width: int, seed: int, clip_norm: float | None = None
) -> RecurrentLanguageModel:
    """Returns the model that all steps train."""
    model = RecurrentLanguageModel(
        preset.vocabulary_size,
        width,
        _LAYERS,
        seed=seed,
        clip_norm=clip_norm,
        loss_scale=float(preset.window),
    )
    model.reset_states(preset.batch_size)
    return model


def wrapped_model(
    preset: Preset,
    stream: Stream,
    width: int,
    seed: int,
    contexts: Contexts,
    gradient: Any = "direct",
    order: int = 2,
) -> InducedModelMatching:
    """Returns a compiled model that matches Kneser-Ney, bigrams by default."""
    restricted = KneserNey(order).fit(stream.tokens, stream.vocabulary_size)
    model = InducedModelMatching(
        language_model(preset, width, seed),
        restricted,
        contexts,
        _COEFFICIENT,
        gradient=gradient,
        clip_norm=_CLIP_NORM,
        loss_scale=float(preset.window),
    )
    model.compile(keras.optimizers.SGD(_LEARNING_RATE))
    return model


def plain_step(preset: Preset, stream: Stream, width: int, seed: int) -> Step:
    """Returns the step without IMM."""
    model = language_model(preset, width, seed, _CLIP_NORM)
    model.compile(keras.optimizers.SGD(_LEARNING_RATE))
    return _step(preset, stream, model)


def _step(preset: Preset, stream: Stream, model: keras.Model) -> Step:
    batches = windows(stream, preset.batch_size, preset.window, _BATCHES)
    return train_function_step(model, batches)

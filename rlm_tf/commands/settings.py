"""The settings of the commands; every field is a flag."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from typing import Any

from rlm_tf.command_line.flags import setting

RULES = (
    "sentencepiece-unigram",
    "sentencepiece-bpe",
    "words",
    "whitespace",
    "characters",
    "bytes",
)
# By architecture, what each of the dropout rates is on.
DROPOUTS = {
    "lstm": ("inputs", "between layers", "states", "outputs"),
    "transformer": ("inputs and in blocks", "outputs"),
}
# Of an ensemble.
_MOST_MODELS = 100
# What the discriminator of BMI sees of a line.
_POOLINGS = ("max", "mean", "last")
EMBEDDED = "python-docs"
# Files of a trained model's folder; the second is written last.
SETTINGS = "settings.json"
RESULTS = "results.json"


@dataclasses.dataclass(frozen=True)
class TrainSettings:
    """Settings of `rlm_tf train`; None: chosen by the text and the time."""

    text: str | None = setting(
        None, f"A text file, plain, .gz or .zip, or {EMBEDDED}, which is embedded."
    )
    valid: str | None = setting(
        None, "The validation text; with --test. Without: 8:1:1 by whole lines."
    )
    test: str | None = setting(None, "The test text; with --valid.")
    count_text: str | None = setting(
        None, "More text, which may be counted but not trained on."
    )
    output_dir: str | None = setting(None, "Folder of the model and its report.")
    minutes: float = setting(
        30.0,
        "Time for everything: reading, training, and what takes about a minute of two "
        "cores whatever is given: measuring, export and report.",
    )
    epochs: int | None = setting(
        None, "Passes over the text, instead of --minutes: repeatable to the bit."
    )

    rule: str | None = setting(None, f"Tokens are: {', '.join(RULES)}.")
    max_size: int | None = setting(None, "Largest size of the vocabulary.")
    nfkc: bool = setting(False, "Subwords: compatible characters become one first.")
    order: int = setting(5, "Order of the Kneser-Ney model.")
    mixture: bool = setting(
        True, "Whether the n-gram is mixed in and served; --nomixture: one small model."
    )
    imm: bool | None = setting(
        None, "Whether an induced model is matched; by default where no mixture is."
    )
    coefficient: float | None = setting(None, "lambda of induced model matching.")
    bmi: bool = setting(
        False,
        "Whether a discriminator learns to tell neighbouring lines from others "
        "meanwhile (BMI), and the export scores pairs of texts.",
    )
    bmi_weight: float = setting(0.1, "Of BMI, both phases, at first.")
    bmi_raml_weight: float | None = setting(
        None, "Of its second phase, always; by default that of the first."
    )
    bmi_half_life: int | None = setting(
        None, "Epochs after each of which that weight is halved; by default it stays."
    )
    bmi_pooling: str = setting(
        "max",
        "What the discriminator sees of a line: max, mean or last of its features; "
        "only for last the model has to remember a line to its end.",
    )
    bmi_phase_two: str | None = setting(None, "Its second phase: raml or rl.")
    bmi_switch: int | None = setting(
        None, "The epoch after which the second phase begins."
    )

    ensemble: int = setting(
        1,
        "Models of this seed and the next ones that are trained one after the other, "
        "each for its share of the time or for all --epochs, and served as their mean.",
    )
    architecture: str = setting("lstm", f"The network: {' or '.join(DROPOUTS)}.")
    width: int | None = setting(None, "Width of embedding and layers.")
    num_layers: int | None = setting(
        None, "Number of layers; by default as usual for the architecture."
    )
    dropouts: tuple[float, ...] | None = setting(
        None,
        "Rates; lstm: on inputs, between layers, on states, on outputs; transformer: "
        "on inputs and in blocks, on outputs.",
    )
    batch_size: int | None = setting(None, "Rows of a batch.")
    window: int | None = setting(
        None,
        "Time steps of a window, by which losses are scaled; by default as usual for "
        "the architecture.",
    )
    learning_rate: float | None = setting(
        None, "Of Adam; by default that of the architecture and the amount of text."
    )
    clip_norm: float = setting(10.0, "Clipping norm of the summed-over-time gradient.")
    l2: float | None = setting(
        None,
        "Penalty: so many times half the squared weights, beside losses of windows; by "
        "default that of the architecture and the amount of text, none beside "
        "--weight_decay.",
    )
    weight_decay: float = setting(
        0.0, "Of AdamW: a step takes so much of weights, times the learning rate."
    )
    noising: float = setting(
        0.0,
        "How much of the training text is replaced by draws of a bigram, at most; 0.1 "
        "to 0.6 are usual, 0.1 where little text is read some sixty times.",
    )
    dynamic: bool = setting(True, "Whether dynamic evaluation is measured, too.")
    strategy: str = setting("default", "Of tf.distribute: default or mirrored.")
    seed: int = setting(1, "Seed of initialisation and dropout.")
    most_megabytes: float = setting(
        100.0, "Of a larger text only the first part is used."
    )
    resume: bool = setting(True, "Goes on where a run in --output_dir was ended.")
    overwrite: bool = setting(False, "Whether what --output_dir holds is replaced.")


@dataclasses.dataclass(frozen=True)
class EvaluateSettings:
    """Settings of `rlm_tf evaluate`."""

    model: str | None = setting(None, "Folder that `rlm_tf train` has written.")
    text: str | None = setting(None, "The text file to evaluate on.")


@dataclasses.dataclass(frozen=True)
class CompareSettings:
    """Settings of `rlm_tf compare`."""

    models: tuple[str, ...] = setting((), "Folders that `rlm_tf train` has written.")


@dataclasses.dataclass(frozen=True)
class ScoreSettings:
    """Settings of `rlm_tf score`."""

    model: str | None = setting(None, "Folder that `rlm_tf train` has written.")
    batch_size: int = setting(32, "Lines scored at once.")


@dataclasses.dataclass(frozen=True)
class GenerateSettings:
    """Settings of `rlm_tf generate`."""

    model: str | None = setting(None, "Folder that `rlm_tf train` has written.")
    prompt: str = setting("", "The text to go on from.")
    max_tokens: int = setting(100, "Number of new tokens.")
    samples: int = setting(1, "Number of continuations, each with a seed of its own.")
    seed: int = setting(1, "Of the first; the next ones count on.")
    temperature: float = setting(1.0, "0 takes the most probable token.")
    top_k: int = setting(0, "Only so many most probable tokens are drawn; 0: all.")
    top_p: float = setting(0.95, "Share of the probability that may be drawn.")


@dataclasses.dataclass(frozen=True)
class ExportSettings:
    """Settings of `rlm_tf export`."""

    model: str | None = setting(None, "Folder that `rlm_tf train` has written.")
    output_dir: str | None = setting(None, "Folder of the SavedModel.")
    mixture: bool = setting(
        True, "Whether the n-gram is served with the model, as it was trained for."
    )
    n_gram: bool = setting(False, "Whether the n-gram is served alone.")
    overwrite: bool = setting(False, "Whether a SavedModel there is replaced.")


def check_given(command: str, settings: Any, *names: str) -> None:
    """Raises ValueError if a flag is missing without which nothing can be done."""
    for name in names:
        if not getattr(settings, name):
            raise ValueError(f"{command} needs --{name} (--help lists the flags).")


def check_evaluate_settings(settings: EvaluateSettings) -> None:
    """Raises ValueError if `rlm_tf evaluate` cannot begin."""
    check_given("rlm_tf evaluate", settings, "model", "text")
    check_folder(settings.model, "rlm_tf evaluate")
    check_text_file("text", settings.text)


def check_compare_settings(settings: CompareSettings) -> None:
    """Raises ValueError if `rlm_tf compare` cannot begin."""
    check_given("rlm_tf compare", settings, "models")
    for path in settings.models:
        check_folder(path, "rlm_tf compare")


def check_score_settings(settings: ScoreSettings) -> None:
    """Raises ValueError if `rlm_tf score` cannot begin."""
    check_given("rlm_tf score", settings, "model")
    _check_at_least("batch_size", settings.batch_size, 1)
    check_folder(settings.model, "rlm_tf score")


def check_generate_settings(settings: GenerateSettings) -> None:
    """Raises ValueError if `rlm_tf generate` cannot begin."""
    check_given("rlm_tf generate", settings, "model")
    _check_at_least("samples", settings.samples, 1)
    check_folder(settings.model, "rlm_tf generate")


def check_export_settings(settings: ExportSettings) -> None:
    """Raises ValueError if `rlm_tf export` cannot begin."""
    check_given("rlm_tf export", settings, "model", "output_dir")
    check_folder(settings.model, "rlm_tf export")


def check_folder(path: str | None, command: str) -> pathlib.Path:
    """Returns the path of a folder with a trained model.

    Raises:
        ValueError: If there is none, or training has not ended.
    """
    folder = pathlib.Path(str(path))
    if not folder.is_dir():
        raise ValueError(
            f"--model={folder} is no folder; expected one that `rlm_tf train "
            "--output_dir` has written."
        )
    if not (folder / RESULTS).is_file():
        begun = (folder / SETTINGS).is_file()
        why = "its training has not ended" if begun else "`rlm_tf train` wrote none"
        raise ValueError(f"--model={folder} has no trained model for {command}: {why}.")
    return folder


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"--{name} must be at least {least}, found {value}.")


def check_text_file(name: str, path: str | None, embedded: bool = False) -> None:
    """Raises ValueError or FileNotFoundError unless a flag names a file."""
    if path is None or (embedded and path == EMBEDDED):
        return
    if os.path.isdir(path):
        raise ValueError(f"--{name}={path} is a folder; expected a text file.")
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"--{name}={path}: there is no such file; expected a text file."
        )


def check_train_settings(settings: TrainSettings) -> None:
    """Raises ValueError for settings that no run can have, or a missing file."""
    check_given("rlm_tf train", settings, "text", "output_dir")
    for name in ("text", "valid", "test", "count_text"):
        check_text_file(name, getattr(settings, name), embedded=name == "text")
    if pathlib.Path(str(settings.output_dir)).is_file():
        raise ValueError(
            f"--output_dir={settings.output_dir} is a file; expected a folder."
        )
    if (settings.valid is None) != (settings.test is None):
        raise ValueError("--valid and --test go together: give both, or neither.")
    if settings.rule is not None and settings.rule not in RULES:
        raise ValueError(
            f"--rule must be one of {', '.join(RULES)}; found {settings.rule!r}."
        )
    if settings.architecture not in DROPOUTS:
        raise ValueError(
            f"--architecture must be one of {', '.join(DROPOUTS)}; found "
            f"{settings.architecture!r}."
        )
    if settings.strategy not in ("default", "one_device", "mirrored"):
        raise ValueError(
            "--strategy must be default, one_device or mirrored; found "
            f"{settings.strategy!r}."
        )
    for name, least, most in (
        ("epochs", 1, math.inf),
        ("max_size", 2, math.inf),
        ("order", 1, 6),
        ("width", 1, math.inf),
        ("num_layers", 1, math.inf),
        ("batch_size", 1, math.inf),
        ("window", 1, math.inf),
        ("bmi_switch", 1, math.inf),
        ("bmi_half_life", 1, math.inf),
        ("ensemble", 1, _MOST_MODELS),
    ):
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            upper = "" if most == math.inf else f" and at most {most}"
            raise ValueError(
                f"--{name} must be at least {least}{upper}, found {value}."
            )
    if settings.ensemble > 1 and settings.bmi:
        raise ValueError(
            f"--ensemble={settings.ensemble} and --bmi do not go together: pairs are "
            "scored by one model."
        )
    _check_bmi(settings)
    for name in (
        "minutes",
        "learning_rate",
        "clip_norm",
        "most_megabytes",
        "bmi_weight",
        "bmi_raml_weight",
    ):
        value = getattr(settings, name)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"--{name} must be positive and finite, found {value}.")
    for name in ("coefficient", "l2", "weight_decay"):
        value = getattr(settings, name)
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(
                f"--{name} must be finite and not negative, found {value}."
            )
    _check_noising(settings)
    rates, places = settings.dropouts, DROPOUTS[settings.architecture]
    if rates is not None and (
        len(rates) != len(places) or not all(0 <= rate < 1 for rate in rates)
    ):
        raise ValueError(
            f"--dropouts of --architecture={settings.architecture} must be "
            f"{len(places)} rates in [0, 1), on {', on '.join(places)}; found "
            f"{','.join(map(str, rates))}."
        )
    if settings.architecture == "transformer" and (settings.width or 0) % 8:
        raise ValueError(
            "--width of --architecture=transformer must be a multiple of 8, found "
            f"{settings.width}."
        )


def _check_noising(settings: TrainSettings) -> None:
    if not 0 <= settings.noising <= 1:
        raise ValueError(f"--noising must lie in 0..1, found {settings.noising}.")
    if settings.noising and settings.bmi:
        raise ValueError(
            f"--noising={settings.noising} and --bmi do not go together: pairs are of "
            "the text itself."
        )


def _check_bmi(settings: TrainSettings) -> None:
    phase, switch = settings.bmi_phase_two, settings.bmi_switch
    if phase is not None and phase not in ("raml", "rl"):
        raise ValueError(f"--bmi_phase_two must be raml or rl; found {phase!r}.")
    if settings.bmi_pooling not in _POOLINGS:
        raise ValueError(
            f"--bmi_pooling must be one of {', '.join(_POOLINGS)}; found "
            f"{settings.bmi_pooling!r}."
        )
    if settings.bmi_raml_weight is not None and phase is None:
        raise ValueError("--bmi_raml_weight needs --bmi_phase_two.")
    given = [
        f"--{field.name}"
        for field in dataclasses.fields(settings)
        if field.name.startswith("bmi_")
        and getattr(settings, field.name) != field.default
    ]
    if given and not settings.bmi:
        raise ValueError(f"--bmi is needed by {', '.join(given)}.")
    if phase is not None and switch is None:
        raise ValueError(
            f"--bmi_phase_two={phase} needs the epoch after which it begins: give "
            "--bmi_switch."
        )
    if switch is not None and phase is None:
        raise ValueError(f"--bmi_switch={switch} needs --bmi_phase_two.")
    epochs = settings.epochs
    if switch is not None and epochs is not None and switch >= epochs:
        raise ValueError(
            f"--bmi_switch={switch} must be below --epochs={epochs}: the second phase "
            "would never begin."
        )

"""Settings of the commands of encoders; every field is a flag."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from rlm_tf.command_line.flags import setting
from rlm_tf.commands.settings import EMBEDDED, check_given, check_text_file

OBJECTIVES = ("electra", "masked")
EMBEDDINGS = ("disentangled", "separate", "shared")
VARIANTS = ("thesis", "electra")
# As in `rlm_tf.models.SequenceClassifier`, which takes seconds to import.
POOLINGS = ("mean", "cls")
SETTINGS = "settings.json"
# Written last.
RESULTS = "report.json"
# Of a classifier's folder: where its encoder is.
ENCODER = "encoder"
_STRATEGIES = ("default", "one_device", "mirrored")


@dataclasses.dataclass(frozen=True)
class PretrainSettings:
    """Settings of `rlm_tf pretrain`; None: chosen by the text and the time."""

    text: str | None = setting(
        None, f"A text file, plain, .gz or .zip, or {EMBEDDED}, which is embedded."
    )
    valid: str | None = setting(
        None, "Held-out text. Without: the last tenth of the text, 0.5 MB at most."
    )
    output_dir: str | None = setting(None, "Folder of the encoder and its report.")
    minutes: float = setting(60.0, "Time for everything.")
    steps: int | None = setting(
        None, "Of training, instead of --minutes: repeatable to the bit."
    )
    objective: str = setting(
        "masked",
        "masked: the encoder predicts masked words; electra: a generator replaces "
        "words, the encoder finds them, each with an optimiser of its own, which takes "
        "many more steps to begin.",
    )
    embeddings: str = setting(
        "disentangled",
        "Of --objective=electra. disentangled: the encoder adds its own to those of "
        "the generator, which it does not train; separate: it has its own alone, which "
        "found least on a small text; shared: both train the same, with one optimiser.",
    )
    variant: str = setting(
        "thesis",
        "Of --objective=electra, in these alone. thesis: every masked word shows "
        "[MASK], T5's relative positions, Adam's beta_2 0.98; electra, as its code: "
        "15 % of masked words stay as they are, absolute positions, 0.999.",
    )
    documents: bool | None = setting(
        None,
        "Whether empty lines part documents, which no row crosses. Without: where they "
        "have two rows of --length or more on average.",
    )
    max_size: int | None = setting(None, "Largest size of the vocabulary.")
    nfkc: bool = setting(False, "Compatible characters become one first.")

    width: int | None = setting(None, "Of the encoder.")
    num_layers: int = setting(4, "Of the encoder.")
    num_heads: int | None = setting(None, "Of the encoder; by default width / 64.")
    generator_layers: int = setting(1, "Of the generator of --objective=electra.")
    length: int = setting(128, "Tokens of a row.")
    batch_size: int = setting(16, "Rows of a batch.")
    learning_rate: float | None = setting(
        None,
        "Of the encoder, at its highest. Without: 0.002 where it predicts masked "
        "words, 0.001 where it finds replaced ones.",
    )
    generator_learning_rate: float = setting(2e-3, "Of the generator, likewise.")
    discriminator_weight: float = setting(50.0, "Of the detector's loss.")
    mask_ratio: float = setting(0.15, "Share of masked tokens.")
    whole_words: bool = setting(False, "Whether words are masked whole.")
    two_texts: bool = setting(
        False,
        "Whether nine rows of ten have two texts, for tasks of pairs: one document's "
        "lines, parted near the middle.",
    )
    clip_norm: float = setting(2.0, "Of gradients, of each network.")
    dropout: float | None = setting(
        None,
        "Rate of dropout. Without: none for up to 30 passes over the text, else 0.1.",
    )
    strategy: str = setting("default", "Of tf.distribute: default or mirrored.")
    seed: int = setting(1, "Of initialisation, order, masks and dropout.")
    most_megabytes: float = setting(
        100.0, "Of a larger text only the first part is used."
    )
    resume: bool = setting(True, "Goes on where a run in --output_dir was ended.")
    overwrite: bool = setting(False, "Whether what --output_dir holds is replaced.")


@dataclasses.dataclass(frozen=True)
class FinetuneSettings:
    """Settings of `rlm_tf finetune`; None: chosen by the examples and the time."""

    encoder: str | None = setting(
        None,
        "Folder that `rlm_tf pretrain` has written, or of a published BERT: "
        "config.json, model.safetensors and vocab.txt.",
    )
    train: str | None = setting(
        None, "A CSV or TSV file of labelled texts, whose first line names the columns."
    )
    valid: str | None = setting(
        None, "Likewise, to choose the epoch on. Without: a tenth of --train."
    )
    test: str | None = setting(
        None, "Likewise, to be judged on. Without: a fifth of --train."
    )
    text_column: str = setting("text", "Where texts are.")
    label_column: str = setting("label", "Where labels are.")
    text_b_column: str | None = setting(None, "Where second texts of pairs are.")
    regression: bool = setting(False, "Whether labels are numbers.")
    output_dir: str | None = setting(None, "Folder of the classifier and its report.")
    minutes: float | None = setting(None, "Most time for training.")
    epochs: int | None = setting(None, "Passes over the examples.")

    length: int | None = setting(None, "Tokens of a row; longer texts are cut.")
    batch_size: int = setting(16, "Texts of a batch.")
    pooling: str = setting(
        "mean", "What of a text the classes are told by: mean of all tokens, or cls."
    )
    learning_rate: float | None = setting(
        None, "Of AdaMax, at its highest; none: 0.001, of a published BERT 0.00005."
    )
    rate_decay: float = setting(
        1.0, "What the rate is multiplied by from layer to layer, downwards."
    )
    warm_up: float = setting(0.1, "Share of the steps in which the rate rises.")
    weight_decay: float = setting(
        0.0, "Of AdaMax, decoupled; not of biases and of normalisation."
    )
    clip_norm: float = setting(1.0, "Of the gradient.")
    dropout: float = setting(0.1, "Rate of dropout, whatever it was before.")
    strategy: str = setting("default", "Of tf.distribute: default or mirrored.")
    seed: int = setting(1, "Of splits, order, the head and dropout.")
    resume: bool = setting(True, "Goes on where a run in --output_dir was ended.")
    overwrite: bool = setting(False, "Whether what --output_dir holds is replaced.")


@dataclasses.dataclass(frozen=True)
class ClassifierSettings:
    """Settings of `rlm_tf classifier`: of the two commands that it runs."""

    text: str | None = setting(
        None, "Text to pre-train on, see `rlm_tf pretrain`. Without: that of --train."
    )
    train: str | None = setting(
        None, "A CSV or TSV file of labelled texts, whose first line names the columns."
    )
    valid: str | None = setting(
        None, "Likewise, to choose the epoch on. Without: a tenth of --train."
    )
    test: str | None = setting(
        None, "Likewise, to be judged on. Without: a fifth of --train."
    )
    text_column: str = setting("text", "Where texts are.")
    label_column: str = setting("label", "Where labels are.")
    text_b_column: str | None = setting(None, "Where second texts of pairs are.")
    regression: bool = setting(False, "Whether labels are numbers.")
    output_dir: str | None = setting(
        None, f"Folder of the classifier; its encoder is in {ENCODER}/ there."
    )
    minutes: float = setting(60.0, "Time for everything.")
    steps: int | None = setting(
        None,
        "Of pre-training, and --epochs of fine-tuning, instead of --minutes: "
        "repeatable to the bit.",
    )
    epochs: int | None = setting(None, "Passes over the examples.")
    objective: str = setting("masked", "See `rlm_tf pretrain`.")
    documents: bool | None = setting(None, "See `rlm_tf pretrain`.")
    max_size: int | None = setting(None, "Largest size of the vocabulary.")
    nfkc: bool = setting(False, "Compatible characters become one first.")
    width: int | None = setting(None, "Of the encoder.")
    num_layers: int = setting(4, "Of the encoder.")
    length: int | None = setting(None, "Tokens of an example; longer ones are cut.")
    strategy: str = setting("default", "Of tf.distribute: default or mirrored.")
    seed: int = setting(1, "Of all that is random.")
    resume: bool = setting(True, "Goes on where a run in --output_dir was ended.")
    overwrite: bool = setting(False, "Whether what --output_dir holds is replaced.")


@dataclasses.dataclass(frozen=True)
class FillMaskSettings:
    """Settings of `rlm_tf fill_mask`."""

    model: str | None = setting(None, "Folder that `rlm_tf pretrain` has written.")
    text: str | None = setting(None, "A text with [MASK] in it, once or more.")
    k: int = setting(5, "Words for each.")


@dataclasses.dataclass(frozen=True)
class ClassifySettings:
    """Settings of `rlm_tf classify`."""

    model: str | None = setting(
        None, "Folder that `rlm_tf classifier` or `finetune` has written."
    )
    batch_size: int = setting(32, "Lines that are read at once.")


# === Checks ===


def check_pretrain_settings(settings: PretrainSettings) -> None:
    """Raises ValueError for settings that no run can have, or a missing file."""
    check_given("rlm_tf pretrain", settings, "text", "output_dir")
    check_text_file("text", settings.text, embedded=True)
    check_text_file("valid", settings.valid)
    _check_common(settings)
    _check_choice(settings, "objective", OBJECTIVES)
    _check_choice(settings, "embeddings", EMBEDDINGS)
    _check_choice(settings, "variant", VARIANTS)
    if settings.variant == "electra" and settings.objective != "electra":
        raise ValueError(
            "--variant=electra is of --objective=electra; found "
            f"--objective={settings.objective}."
        )
    _check_numbers(
        settings,
        {
            "steps": (1, math.inf),
            "max_size": (10, math.inf),
            "width": (1, math.inf),
            "num_layers": (1, math.inf),
            "num_heads": (1, math.inf),
            "generator_layers": (1, math.inf),
            "length": (8, math.inf),
            "batch_size": (1, math.inf),
        },
    )
    _check_positive(
        settings,
        "minutes",
        "learning_rate",
        "generator_learning_rate",
        "discriminator_weight",
        "clip_norm",
        "most_megabytes",
    )
    if not 0 < settings.mask_ratio < 1:
        raise ValueError(
            f"--mask_ratio must lie in (0, 1), found {settings.mask_ratio}."
        )
    _check_dropout(settings.dropout)
    width, heads = settings.width, settings.num_heads
    if width is not None and width % (heads or max(1, width // 64)):
        raise ValueError(
            f"--width={width} must be a multiple of the number of heads, "
            f"{heads or max(1, width // 64)} (--num_heads)."
        )


def _check_choice(settings: Any, name: str, known: Sequence[str]) -> None:
    value = getattr(settings, name)
    if value not in known:
        raise ValueError(
            f"--{name} must be one of {', '.join(known)}; found {value!r}."
        )


def _check_dropout(rate: float | None) -> None:
    if rate is not None and not 0 <= rate < 1:
        raise ValueError(f"--dropout must lie in [0, 1), found {rate}.")


def check_finetune_settings(settings: FinetuneSettings) -> None:
    """Raises ValueError for settings that no run can have, or a missing file."""
    check_given("rlm_tf finetune", settings, "encoder", "train", "output_dir")
    _check_examples(settings)
    if not is_published(str(settings.encoder)):
        check_encoder_folder("encoder", settings.encoder, "rlm_tf pretrain")
    encoder, output = (
        pathlib.Path(str(path)).resolve()
        for path in (settings.encoder, settings.output_dir)
    )
    if encoder == output:
        raise ValueError(
            f"--output_dir={settings.output_dir} is --encoder's folder, whose files "
            "would be replaced; expected another one."
        )


def check_classifier_settings(settings: ClassifierSettings) -> None:
    """Raises ValueError for settings that no run can have, or a missing file."""
    check_given("rlm_tf classifier", settings, "train", "output_dir")
    check_text_file("text", settings.text, embedded=True)
    _check_examples(settings)
    _check_choice(settings, "objective", OBJECTIVES)
    if (settings.steps is None) != (settings.epochs is None):
        raise ValueError(
            "--steps and --epochs go together: give both in place of --minutes, or "
            "neither."
        )
    _check_numbers(
        settings,
        {
            "steps": (1, math.inf),
            "max_size": (10, math.inf),
            "width": (1, math.inf),
            "num_layers": (1, math.inf),
        },
    )


def check_fill_mask_settings(settings: FillMaskSettings) -> None:
    """Raises ValueError if `rlm_tf fill_mask` cannot begin."""
    check_given("rlm_tf fill_mask", settings, "model", "text")
    if "[MASK]" not in str(settings.text):
        raise ValueError(f"--text must have [MASK] in it, found {settings.text!r}.")
    _check_numbers(settings, {"k": (1, math.inf)})
    check_encoder_folder("model", settings.model, "rlm_tf pretrain")


def check_classify_settings(settings: ClassifySettings) -> None:
    """Raises ValueError if `rlm_tf classify` cannot begin."""
    check_given("rlm_tf classify", settings, "model")
    _check_numbers(settings, {"batch_size": (1, math.inf)})
    check_encoder_folder("model", settings.model, "rlm_tf classifier")


def is_published(folder: str | pathlib.Path) -> bool:
    """Returns whether a folder holds a BERT checkpoint, and no run of ours."""
    folder = pathlib.Path(folder)
    return (folder / "config.json").is_file() and not (folder / RESULTS).is_file()


def check_encoder_folder(flag: str, path: str | None, command: str) -> pathlib.Path:
    """Returns the path of a folder that a command has written.

    Raises:
        ValueError: If there is none, or the command has not ended.
    """
    folder = pathlib.Path(str(path))
    if not folder.is_dir():
        raise ValueError(
            f"--{flag}={folder} is no folder; expected one that `{command} "
            "--output_dir` has written."
        )
    if not (folder / RESULTS).is_file():
        begun = (folder / SETTINGS).is_file()
        why = "its training has not ended" if begun else f"`{command}` wrote none"
        raise ValueError(f"--{flag}={folder} has no trained model: {why}.")
    return folder


def _check_examples(settings: FinetuneSettings | ClassifierSettings) -> None:
    for name in ("train", "valid", "test"):
        check_text_file(name, getattr(settings, name))
    _check_common(settings)
    _check_numbers(
        settings,
        {"epochs": (1, math.inf), "length": (8, math.inf), "batch_size": (1, math.inf)},
    )
    _check_positive(settings, "minutes", "learning_rate", "clip_norm")
    if isinstance(settings, FinetuneSettings):
        _check_choice(settings, "pooling", POOLINGS)
    decay = getattr(settings, "rate_decay", 1.0)
    if not 0 < decay <= 1:
        raise ValueError(f"--rate_decay must lie in (0, 1], found {decay}.")
    _check_dropout(getattr(settings, "dropout", None))
    _check_numbers(settings, {"weight_decay": (0.0, math.inf)})
    warm_up = getattr(settings, "warm_up", 0.0)
    if not 0 <= warm_up < 1:
        raise ValueError(f"--warm_up must be a share in [0, 1), found {warm_up}.")


def _check_common(settings: Any) -> None:
    if os.path.isfile(str(settings.output_dir)):
        raise ValueError(
            f"--output_dir={settings.output_dir} is a file; expected a folder."
        )
    _check_choice(settings, "strategy", _STRATEGIES)
    _check_numbers(settings, {"seed": (0, math.inf)})


def _check_numbers(settings: Any, ranges: dict[str, tuple[float, float]]) -> None:
    for name, (least, most) in ranges.items():
        value = getattr(settings, name, None)
        if value is not None and not least <= value <= most:
            raise ValueError(f"--{name} must be at least {least}, found {value}.")


def _check_positive(settings: Any, *names: str) -> None:
    for name in names:
        value = getattr(settings, name, None)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"--{name} must be positive and finite, found {value}.")

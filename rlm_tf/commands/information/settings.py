"""The settings of `rlm_tf coherence`; every field is a flag."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import zipfile

from rlm_tf.command_line.flags import setting
from rlm_tf.commands.settings import check_folder, check_text_file

CRITICS = ("separable", "mlp", "large")
TEXT_RULES = ("words", "whitespace", "characters", "bytes")
_SOURCES = ("text", "corpus", "saved_model", "model")


@dataclasses.dataclass(frozen=True)
class CoherenceSettings:
    """What is measured, and how."""

    text: tuple[str, ...] = setting((), "Text files, plain, .gz or .zip.")
    corpus: tuple[str, ...] = setting(
        (),
        "Corpora by name, of which the training text is taken; python-docs is "
        "embedded.",
    )
    data_dir: str | None = setting(None, "Folder of the corpora [RLM_DATA_DIR].")
    saved_model: tuple[str, ...] = setting(
        (), "SavedModels with the function `generate`, which are sampled."
    )
    model: tuple[str, ...] = setting(
        (),
        "Language models that are sampled: .keras files, or folders that "
        "`rlm_tf train` has written, which say what they serve.",
    )
    vocabulary: str | None = setting(
        None, "Of .keras files; by default vocabulary.txt beside each."
    )
    context_length: int | None = setting(
        None, "Most tokens that a .keras model without states is run on."
    )
    tokens: int | None = setting(
        None,
        "Tokens of a sample; by default as many as the shortest text has, or 200,000.",
    )
    rule: str = setting("words", f"What a token of a text is: {', '.join(TEXT_RULES)}.")
    max_words: int = setting(
        20_000, "The most frequent words that are told apart; others are one."
    )
    line_ends: bool = setting(False, "Whether ends of lines are tokens, too.")
    segment: int = setting(40, "Tokens of a segment.")
    gaps: tuple[int, ...] = setting((0, 10, 100), "Tokens between two segments.")
    folds: int = setting(10, "Folds of an estimate, at least 3.")
    critic: str = setting("separable", f"The critic: {', '.join(CRITICS)}.")
    most_steps: int = setting(4000, "Steps after which a critic is trained no further.")
    controls: bool = setting(
        True, "Whether the first text is measured with words and sentences shuffled."
    )
    seed: int = setting(0, "Of critics, batches, samples and shuffling.")
    output_dir: str = setting("coherence", "Folder of the report.")
    resume: bool = setting(True, "Goes on where a run in --output_dir was ended.")
    overwrite: bool = setting(False, "Whether what --output_dir holds is replaced.")


def check_coherence_settings(settings: CoherenceSettings) -> None:
    """Raises ValueError if `rlm_tf coherence` cannot begin, or a file is missing."""
    if not any(getattr(settings, name) for name in _SOURCES):
        raise ValueError(
            f"nothing to measure: give --{', --'.join(_SOURCES[:-1])} or "
            f"--{_SOURCES[-1]} (--help lists the flags)."
        )
    names = [name for source in _SOURCES for name in getattr(settings, source)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is given twice.")
    for path in settings.text:
        check_text_file("text", path)
    for path in settings.saved_model:
        if not (pathlib.Path(path) / "saved_model.pb").is_file():
            raise ValueError(
                f"--saved_model={path} is no SavedModel; expected a folder with "
                "saved_model.pb."
            )
    for path in settings.model:
        _check_model(settings, path)
    for name, value, known in (
        ("critic", settings.critic, CRITICS),
        ("rule", settings.rule, TEXT_RULES),
    ):
        if value not in known:
            raise ValueError(
                f"--{name} must be one of {', '.join(known)}; found {value!r}."
            )
    for name, least in (
        ("segment", 1),
        ("folds", 3),
        ("most_steps", 1),
        ("max_words", 2),
        ("tokens", 1),
        ("context_length", 1),
        ("seed", 0),
    ):
        value = getattr(settings, name)
        if value is not None and value < least:
            raise ValueError(f"--{name} must be at least {least}, found {value}.")
    if not settings.gaps or min(settings.gaps) < 0:
        found = ",".join(map(str, settings.gaps)) or "none"
        raise ValueError(
            "--gaps must name numbers of tokens, at least one, from 0 on; found "
            f"{found}."
        )
    twice = sorted({gap for gap in settings.gaps if settings.gaps.count(gap) > 1})
    if twice:
        raise ValueError(f"--gaps must be distinct; found {twice[0]} twice.")
    if pathlib.Path(settings.output_dir).is_file():
        raise ValueError(
            f"--output_dir={settings.output_dir} is a file; expected a folder."
        )


def _check_model(settings: CoherenceSettings, path: str) -> None:
    if os.path.isdir(path):
        check_folder(path, "rlm_tf coherence")
        return
    if not os.path.isfile(path):
        raise FileNotFoundError(f"--model={path}: there is no such file or folder.")
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"--model={path} must be a folder of rlm_tf train or a .keras file; it is "
            "neither (texts go to --text)."
        )
    vocabulary = vocabulary_of(settings, path)
    if not vocabulary.is_file():
        raise FileNotFoundError(
            f"--model={path} needs its vocabulary; there is no file {vocabulary} "
            "(--vocabulary)."
        )


def vocabulary_of(settings: CoherenceSettings, path: str) -> pathlib.Path:
    """Returns the file of the vocabulary of a `.keras` file."""
    if settings.vocabulary is not None:
        return pathlib.Path(settings.vocabulary)
    return pathlib.Path(path).parent / "vocabulary.txt"

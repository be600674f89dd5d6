"""Writes a SavedModel, training a demonstration model where none is given."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from experiments.export.config import PRESETS, Config
from rlm_tf import load_model
from rlm_tf.file_errors import one_line

_SIGNATURES = ("score", "next_token", "generate")


def main(config: Config) -> pathlib.Path:
    """Exports, then shows what was written; returns its directory.

    Raises:
        FileNotFoundError: If the model's or the vocabulary's file is missing.
        FileExistsError: If something is in the way.
        ValueError: If an option is impossible, or model and vocabulary do not fit.
    """
    import tensorflow as tf

    from rlm_tf.serving import check_export_path, export_language_model

    if config.preset not in PRESETS:
        raise ValueError(
            f"--preset must be one of {', '.join(PRESETS)}; found {config.preset!r}."
        )
    if not config.seeds:
        raise ValueError("--seeds must name at least one integer.")
    _check_sampling(config)
    path = pathlib.Path(config.output_dir)
    if not config.resume:
        check_export_path(
            path, config.overwrite, "use another --output_dir, or add --overwrite"
        )
    if not (config.resume and (path / "saved_model.pb").is_file()):
        # A graph that is traced next to a GPU may hold operations only a GPU has.
        tf.config.set_visible_devices([], "GPU")
        model, vocabulary = _load(config) if config.model else _train(config)
        export_language_model(
            model,
            vocabulary,
            path,
            context_length=config.context_length or None,
            overwrite=config.overwrite,
        )
    for line in describe(config, path):
        print(line)
    return path


def _check_sampling(config: Config) -> None:
    """Raises ValueError before anything is trained for samples nobody can draw."""
    from rlm_tf.generation import MOST_CALIBRATION
    from rlm_tf.serving import MAX_TOKENS

    for flag, possible, expected in (
        (
            "max_tokens",
            0 <= config.max_tokens <= MAX_TOKENS,
            f"in [0, {MAX_TOKENS}]",
        ),
        ("temperature", 0 <= config.temperature < math.inf, "at least 0 and finite"),
        ("top_k", config.top_k >= 0, "at least 0"),
        ("top_p", 0 <= config.top_p <= 1, "in [0, 1]"),
        ("eta", 0 <= config.eta <= 1, "in [0, 1]"),
        ("typical_p", 0 <= config.typical_p <= 1, "in [0, 1]"),
        (
            "calibration",
            abs(config.calibration) <= MOST_CALIBRATION,
            f"in [{-MOST_CALIBRATION:g}, {MOST_CALIBRATION:g}]",
        ),
        ("context_length", config.context_length >= 0, "at least 0"),
    ):
        if not possible:
            raise ValueError(
                f"--{flag} must be {expected}, found {getattr(config, flag)}."
            )


# === Model ===


def _load(config: Config) -> tuple[Any, Any]:
    from rlm_tf.data import Vocabulary

    path = pathlib.Path(config.model)
    vocabulary = pathlib.Path(config.vocabulary or path.parent / "vocabulary.txt")
    for flag, file in (("model", path), ("vocabulary", vocabulary)):
        if file.is_dir():
            raise IsADirectoryError(f"--{flag}: {file} is a folder, expected a file.")
        if not file.is_file():
            raise FileNotFoundError(f"--{flag}: there is no file {file}.")
    try:
        words = Vocabulary.load(vocabulary)
    except ValueError as error:
        raise ValueError(f"--vocabulary: {error}") from error
    return _read_model(path), words


def _read_model(path: pathlib.Path) -> Any:
    """Returns the Keras model in a file.

    Raises:
        ValueError: If there is none; names the file.
    """
    try:
        return load_model(path, compile=False)
    except ValueError as error:
        raise ValueError(f"--model: {error}") from error


def _train(config: Config) -> tuple[Any, Any]:
    from experiments.imm_lm import config as configs
    from experiments.imm_lm import training
    from experiments.kit.run_settings import settings_of
    from rlm_tf.command_line import run_lock
    from rlm_tf.command_line.json_files import read_json
    from rlm_tf.command_line.same_settings import check_same_settings
    from rlm_tf.data import load_corpus

    settings = dataclasses.replace(
        configs.PRESETS[config.preset],
        arm="none",
        corpus=config.corpus,
        seed=config.seeds[0],
    )
    folder = pathlib.Path(config.training_dir) / config.preset
    corpus = load_corpus(config.corpus, config.data_dir or None)
    with run_lock.held(folder, "--training_dir"):
        file = folder / "config.json"
        if file.is_file():
            remedy = f"remove {folder}, or use another --training_dir"
            check_same_settings(
                read_json(file, remedy),
                settings_of(settings, corpus),
                str(file),
                "another --training_dir",
            )
        print(
            f"No --model: training {settings.num_layers} x {settings.width} units on "
            f"{int(len(corpus.train) * settings.fraction):,} tokens of {corpus.name}."
        )
        prepared = training.prepare(settings, corpus)
        training.fit(prepared, folder)
    return prepared.model, corpus.vocabulary


# === Report ===


def _load_export(path: pathlib.Path) -> Any:
    """Returns the SavedModel of a language model.

    Raises:
        ValueError: If there is none; names the folder.
    """
    import tensorflow as tf

    remedy = "use another --output_dir, or --overwrite without --resume"
    try:
        loaded = tf.saved_model.load(str(path))
    except Exception as error:  # Whatever a damaged file makes TensorFlow raise.
        raise ValueError(
            f"{path} could not be read as a SavedModel ({one_line(error)}); {remedy}."
        ) from error
    missing = [name for name in _SIGNATURES if name not in loaded.signatures]
    if missing:
        raise ValueError(
            f"{path} is not the SavedModel of a language model: it has no signature "
            f"{', '.join(missing)}; {remedy}."
        )
    return loaded


def describe(config: Config, path: pathlib.Path) -> Iterator[str]:
    """Yields the lines that tell what the SavedModel is and how to use it."""
    import tensorflow as tf

    from rlm_tf.serving import is_version, served_name

    loaded = _load_export(path)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    yield f"\n{path}: a SavedModel of {size / 1e6:.1f} MB\n"
    yield "Signatures"
    for name in _SIGNATURES:
        signature = loaded.signatures[name]
        yield f"  {name}"
        yield f"    takes    {_tensors(signature.structured_input_signature[1])}"
        yield f"    returns  {_tensors(signature.structured_outputs)}"
    prompt = repr(config.prompt)
    prompt = prompt if len(prompt) <= 80 else f"{prompt[:80]}..."
    yield f"\nSamples after {prompt}"
    for seed in config.seeds:
        try:
            answer = loaded.generate(
                tf.constant([config.prompt]),
                config.max_tokens,
                config.temperature,
                config.top_k,
                config.top_p,
                config.eta,
                config.typical_p,
                config.calibration,
                seed,
            )
        except tf.errors.InvalidArgumentError as error:
            reasons = re.findall("assertion failed: (.*)", error.message)
            reason = reasons[0] if reasons else one_line(error)
            raise ValueError(f"--prompt {prompt}: {reason}") from error
        text = answer["text"].numpy()[0].decode()
        yield f"  seed {seed}: " + text.replace("\n", "\n    ")
    name = served_name(path)
    place = path.absolute()
    source, inside = (place.parent, "") if is_version(place) else (place, "/1")
    yield f"""
Look inside
  saved_model_cli show --dir {path} --all
Serve (any TensorFlow Serving)
  docker run --rm -p 8501:8501 -e MODEL_NAME={name} \\
    --mount type=bind,source={source},target=/models/{name}{inside} \\
    tensorflow/serving
  curl http://localhost:8501/v1/models/{name}:predict -d \\
    '{{"signature_name": "score", "inputs": {{"texts": ["a text", "another"]}}}}'"""


def _tensors(specs: dict[str, Any]) -> str:
    def text(name: str, spec: Any) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
        return f"{name}: {spec.dtype.name}[{sizes}]"

    return ", ".join(text(name, spec) for name, spec in sorted(specs.items()))

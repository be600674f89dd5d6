"""Flags that binaries which train language models share, and what they ask for."""

from __future__ import annotations

import fnmatch
import pathlib
from typing import TYPE_CHECKING, Any

from absl import flags

from rlm_tf.command_line import flags as config_flags

if TYPE_CHECKING:
    from experiments.kit.rows import Rows

FLAGS = flags.FLAGS

# Those of `rlm_tf.distribution`, whose import takes seconds.
STRATEGIES = ("default", "one_device", "mirrored", "multi_worker_mirrored", "tpu")
_PROMPT = "the value of the"


def define_run_flags(
    name: str, seeds: str = "Comma-separated seeds, one run each."
) -> None:
    """Defines the flags of a binary's runs.

    Args:
        name: Of the binary; a run is written below `runs/NAME`.
        seeds: Help of `--seeds`.
    """
    flags.DEFINE_string("data_dir", None, "Folder of the corpora [RLM_DATA_DIR].")
    flags.DEFINE_string(
        "output_dir", f"runs/{name}", "Folder of everything that is written."
    )
    flags.DEFINE_string("results_dir", None, "Folder of the rows [OUTPUT_DIR/results].")
    flags.DEFINE_list("seeds", ["1"], seeds)
    flags.DEFINE_boolean(
        "resume",
        True,
        "Skip finished runs and go on with killed ones; --noresume first deletes the "
        "rows and files of all runs that it is going to make.",
    )
    flags.DEFINE_float(
        "checkpoint_seconds",
        120.0,
        "Within an epoch, a checkpoint is written when the last one is this old.",
        lower_bound=0.0,
    )
    define_strategy_flags()
    flags.DEFINE_integer(
        "project_steps",
        0,
        "Time so many steps instead, and project the hours of all.",
        lower_bound=0,
    )
    flags.DEFINE_string("export", None, "Folder for a SavedModel of the last run.")


def define_strategy_flags() -> None:
    """Defines `--strategy` and `--tpu`."""
    flags.DEFINE_enum(
        "strategy",
        "default",
        STRATEGIES,
        "tf.distribute; multi_worker_mirrored: in each process of TF_CONFIG.",
    )
    flags.DEFINE_string("tpu", None, "Name or address of the TPU of --strategy=tpu.")


def seeds() -> list[int]:
    """Returns the seeds.

    Raises:
        ValueError: If there are none, or one is no integer.
    """
    found = [config_flags.read_as("seeds", seed, int) for seed in FLAGS.seeds]
    if not found:
        raise ValueError("--seeds must name at least one integer.")
    return found


def folders(study: str | None = None) -> tuple[pathlib.Path, Rows]:
    """Returns the folder of runs, and the rows; a study has its own of both."""
    from experiments.kit.rows import Rows

    output = pathlib.Path(FLAGS.output_dir)
    results = Rows(FLAGS.results_dir or output / "results", study)
    return (output / study if study else output), results


def write_row(name: str, found: dict[str, Any]) -> None:
    """Writes what was found without training as a row, and prints its place."""
    from experiments.kit.rows import Rows

    rows = Rows(FLAGS.results_dir or FLAGS.output_dir)
    rows.write(name, found)
    print(rows.place(name))


def refuse_settings_beside_study(config_class: type, others: tuple[str, ...]) -> None:
    """Raises ValueError if settings were given beside `--study`.

    Args:
        config_class: The dataclass of settings that are flags.
        others: Other flags that choose settings.
    """
    given = config_flags.given_flags(config_class)
    given += [name for name in others if FLAGS[name].present]
    if given:
        raise ValueError(
            f"--study has settings of its own; leave out --{', --'.join(given)}."
        )


def runs_like(chosen: dict[str, Any], only: list[str]) -> dict[str, Any]:
    """Returns the runs whose names are like one of `only`, all if that is empty.

    Raises:
        ValueError: If none is left.
    """
    found = {
        name: config
        for name, config in chosen.items()
        if not only or any(fnmatch.fnmatchcase(name, like) for like in only)
    }
    if not found:
        raise ValueError("--only or --seeds leave no run.")
    return found


def check_exportable(output: pathlib.Path, results: Rows, name: str) -> None:
    """Raises ValueError if `--export` wants a run that will leave no model here."""
    model = output / name / "model.keras"
    if FLAGS.export and FLAGS.resume and name in results and not model.exists():
        raise ValueError(
            f"--export needs {model}, which is not there, although the run was done "
            f"before ({results.place(name)}); use another --results_dir, or --noresume."
        )


def export(folder: pathlib.Path) -> None:
    """Writes the SavedModel that `--export` asks for, and shows what it says.

    Args:
        folder: Of the run, with model.keras and vocabulary.txt.
    """
    import keras
    import tensorflow as tf

    from rlm_tf.data import Vocabulary
    from rlm_tf.serving import export_language_model

    model = keras.models.load_model(folder / "model.keras", compile=False)
    vocabulary = Vocabulary.load(folder / "vocabulary.txt")
    export_language_model(model, vocabulary, FLAGS.export, overwrite=True)
    print(
        f"{FLAGS.export}: SavedModel with signatures score, next_token, generate, "
        "generate_default"
    )
    prompt = vocabulary.decode(vocabulary.encode(_PROMPT))
    settings: dict[str, Any] = {
        "max_tokens": 20,
        "temperature": 0.7,
        "top_k": 0,
        "top_p": 0.95,
        "eta": 0.0,
        "typical_p": 1.0,
        "calibration": 0.0,
        "seed": 1,
    }
    text = tf.saved_model.load(FLAGS.export).signatures["generate"](
        prompts=tf.constant([prompt]),
        **{key: tf.constant(value) for key, value in settings.items()},
    )["full_text"]
    print(f"It says: {text.numpy()[0].decode()}")
